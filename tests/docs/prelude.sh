# shellcheck shell=bash
# Sourced before the commands of a page: see run.py and rules.py.
set -eu -o pipefail

beside=()
# shellcheck disable=SC2034  # the commands use it
port=$(python3 "$(dirname "${BASH_SOURCE[0]}")/../e2e/support/ports.py")

say() { echo "== $*"; }

# Runs a command beside those that follow; `finish` waits for it.
beside() {
    "$@" &
    beside+=($!)
}

await_file() {
    until [ -s "$1" ]; do sleep 0.05; done
}

# Runs a server until it has printed its address, then presses Ctrl-C. The file of an earlier server
# must be gone: its address would be taken for that of this one, which ignores signals until it has
# started.
until_address() {
    : >address.txt
    "$@" >address.txt 2>&1 &
    local server=$! code=0
    until grep -q http address.txt; do
        kill -0 "$server" || { cat address.txt; return 1; }
        sleep 0.05
    done
    kill -INT "$server"
    wait "$server" || code=$?
    cat address.txt
    [ "$code" = 0 ] || [ "$code" = 75 ] || [ "$code" = 130 ]
}

finish() {
    for process in "${beside[@]}"; do wait "$process"; done
}
