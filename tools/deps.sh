#!/bin/sh
# Installs the missing Debian packages of the given lists; silent and fast when none is missing.
# Usage: tools/deps.sh LIST...
set -eu

if ! command -v dpkg-query >/dev/null; then
    echo "deps: not a Debian system; install the packages in $* by other means" >&2
    exit 0
fi

wanted=$(sed 's/#.*//' "$@")
# shellcheck disable=SC2086  # word splitting is intended
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
        echo "deps: missing$missing, and sudo is not available. Run as root:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi

apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y"
apt="$apt -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
echo "deps: installing$missing"
# An unreachable package source is not fatal: the existing package lists may suffice.
$apt update </dev/null || echo "deps: could not refresh every package list, continuing" >&2
# shellcheck disable=SC2086
$apt install --no-install-recommends $missing </dev/null || {
    for package in $missing; do
        $apt --simulate install --no-install-recommends "$package" >/dev/null 2>&1 </dev/null ||
            echo "deps: $package cannot be installed" >&2
    done
    echo "deps: could not install$missing. Check the network; DEPS=skip builds without." >&2
    exit 1
}
