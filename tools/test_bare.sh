#!/usr/bin/env bash
# anytime in a bare Debian 12, made by debootstrap: build, tests, installation, packages. Needs
# root, debootstrap and Debian's mirror; takes most of an hour, and 3 GB. Usage:
#
#   tools/test_bare.sh FOLDER [STEP]...    steps: system demo test install deb (default: all)
#
# FOLDER keeps the system, so that later calls and single steps start faster. The committed state
# of this tree is tested. TESTS and LABELS are regular expressions for names and labels of tests,
# for `make test`: LABELS='unit|fast' takes minutes. The machine gets a name that does not resolve,
# as in many containers.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

bare=$(realpath -m "${1:?"usage: tools/test_bare.sh FOLDER [STEP]..."}")
shift
[ $# -gt 0 ] || set -- system demo test install deb
mirror=${MIRROR:-$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\).*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1 || true)}

# Mounts and processes are in namespaces of their own, so nothing of them is left at the end.
if [ "${ANYTIME_BARE_INSIDE:-}" != yes ]; then
    export ANYTIME_BARE_INSIDE=yes
    exec unshare --mount --pid --uts --fork --mount-proc "$0" "$bare" "$@"
fi
hostname bare-debian

inside() { # runs a command as root in the bare system
    chroot "$bare" env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        bash -e -o pipefail -c "$1" </dev/null
}

as_user() { # runs a command as a user without root, in an empty folder
    inside "id reader >/dev/null 2>&1 || useradd --create-home reader
        rm -rf ~reader/empty && install -d -o reader ~reader/empty
        cd ~reader/empty && su reader -c $(printf %q "$1")"
}

mount_system() {
    mount --bind "$bare" "$bare"
    mount -t proc proc "$bare/proc"
    mount --rbind /sys "$bare/sys"
    mount --rbind /dev "$bare/dev"
    cp -L /etc/resolv.conf "$bare/etc/resolv.conf"
    echo "127.0.0.1 localhost" >"$bare/etc/hosts"
}

make_system() {
    [ -x "$bare/bin/bash" ] || debootstrap --variant=minbase bookworm "$bare" "$mirror"
}

# A clean clone of what is committed here, at /anytime.
clone() {
    rm -rf "$bare/anytime"
    git clone --quiet --no-local "$here" "$bare/anytime"
    inside 'command -v make >/dev/null && command -v git >/dev/null || {
            apt-get -q update && apt-get -q -y install make git; }
        git config --global --add safe.directory /anytime'
}

# The README, and the test that runs its commands, without the source tree. What the README takes
# from the tree comes from the installed files.
keep_readme() { # PREFIX
    rm -rf "$bare/readme" && mkdir -p "$bare/readme/docs" "$bare/readme/tests/e2e"
    cp "$here/README.md" "$bare/readme/"
    cp -r "$here/docs/guide" "$bare/readme/docs/"
    cp -r "$here/tests/docs" "$bare/readme/tests/"
    cp -r "$here/tests/e2e/support" "$bare/readme/tests/e2e/"
    ln -s "$1/share/doc/anytime/examples" "$bare/readme/examples"
    ln -s "$1/include" "$bare/readme/include"
    ln -s "$1/lib/python3/dist-packages" "$bare/readme/python"
}

run_readme() { # PREFIX
    keep_readme "$1"
    as_user "set -e
        test -z \"\$(ls)\"
        test \"\$(command -v anytime)\" = $1/bin/anytime
        anytime --version | grep -q '^engines: .*oneDNN'
        test -s $1/share/man/man1/anytime.1 || test -s $1/share/man/man1/anytime.1.gz
        ANYTIME=$1/bin/anytime python3 -B /readme/tests/docs/run.py README"
}

test_demo() { clone && inside 'cd /anytime && make demo'; }

test_test() {
    [ -d "$bare/anytime" ] || clone
    inside "cd /anytime && make test T='${TESTS:-.}' L='${LABELS:-.}'"
}

test_install() {
    [ -d "$bare/anytime" ] || clone
    inside 'cd /anytime && make install && cp build/install_manifest.txt tools/uninstall.sh / &&
        ldconfig && rm -rf /anytime'
    run_readme /usr/local
    # shellcheck disable=SC2016  # expanded inside
    inside './uninstall.sh /install_manifest.txt && rm /uninstall.sh && ldconfig
        test -z "$(find /usr/local -name "*anytime*")"'
}

test_deb() {
    clone
    inside 'cd /anytime
        make deb
        rm -rf /debs && mkdir /debs
        mv build-deb/*.deb /debs/
        cd / && rm -rf /anytime
        find / -xdev -name "*anytime*" -not -path "/debs/*" | sort >/before
        apt-get -q -y install /debs/*.deb'
    run_readme /usr
    inside 'apt-get -q -y purge anytime libanytime-dev python3-anytime
        rm -rf /readme; userdel --remove reader
        find / -xdev -name "*anytime*" -not -path "/debs/*" | sort | diff /before - '
}

for step in "$@"; do
    began=$SECONDS
    echo "=== bare: $step"
    if [ "$step" = system ]; then make_system; fi
    mountpoint -q "$bare/proc" || mount_system
    if [ "$step" != system ]; then "test_$step"; fi
    echo "=== bare: $step passed after $((SECONDS - began)) s"
done
