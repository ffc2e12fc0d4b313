#!/bin/sh
# Installs the Debian packages named in the given lists that this machine lacks.
# Silent and quick when nothing is missing. Usage: tools/deps.sh LIST...
set -eu

if ! command -v dpkg-query >/dev/null; then
    echo "deps: not a Debian system; install what $* names by other means" >&2
    exit 0
fi

wanted=$(sed 's/#.*//' "$@")
# shellcheck disable=SC2086  # one word a package is what we want
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p') || true

missing=
for package in $wanted; do
    echo "$installed" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps: missing$missing, and there is no sudo. As root run:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi

apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y"
apt="$apt -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
echo "deps: installing$missing"
# An unreachable extra source must not stop us: the lists at hand may well be enough.
$apt update </dev/null || echo "deps: could not refresh every package list, going on" >&2
# shellcheck disable=SC2086
$apt install --no-install-recommends $missing </dev/null || {
    echo "deps: could not install$missing. Is there a network? DEPS=skip goes on without." >&2
    exit 1
}
