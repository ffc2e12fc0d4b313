#!/usr/bin/env bash
# Builds anytime without each optional library in turn, and runs the unit tests of the layers that
# use it and e2e.parts.
# Usage: tools/test_without.sh [JOBS] [mpi|onednn|microhttpd]...
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${1:-2}
shift || true
[ $# -gt 0 ] || set -- mpi onednn microhttpd

declare -A option=([mpi]=MPI [onednn]=ONEDNN [microhttpd]=MICROHTTPD)
declare -A called=([mpi]=MPI [onednn]=oneDNN [microhttpd]=microhttpd)
declare -A layers=([mpi]="world|net|cli" [onednn]="learn|model_io" [microhttpd]="serve|report")

# One folder for all: only what changes from one to the next is built again.
for part in "$@"; do
    settings=()
    for other in "${!option[@]}"; do
        on=ON
        [ "$other" != "$part" ] || on=OFF
        settings+=("-DANYTIME_${option[$other]}=$on")
    done
    echo "--- without ${called[$part]}"
    cmake --preset without "${settings[@]}" | grep '✗'
    cmake --build --preset without -j "$jobs" >build-without/build.log 2>&1 || {
        tail -40 build-without/build.log
        exit 1
    }
    ANYTIME_WITHOUT=${called[$part]} \
        ctest --preset without -R "^unit[.](${layers[$part]})_|^e2e[.]parts$"
done
