#!/usr/bin/env bash
# Builds anytime without each optional library in turn, and runs the unit tests of the layers that
# use it and e2e.parts; then hides gnuplot, and runs e2e.report and e2e.parts.
# Usage: tools/test_without.sh [JOBS] [mpi|onednn|microhttpd|gnuplot]...
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${1:-2}
shift || true
[ $# -gt 0 ] || set -- mpi onednn microhttpd gnuplot

declare -A option=([mpi]=MPI [onednn]=ONEDNN [microhttpd]=MICROHTTPD)
declare -A called=([mpi]=MPI [onednn]=oneDNN [microhttpd]=microhttpd [gnuplot]=gnuplot)
declare -A tests=([mpi]="^unit[.](world|net|cli)_" [onednn]="^unit[.](learn|model_io)_"
    [microhttpd]="^unit[.](serve|report)_" [gnuplot]="^e2e[.]report$")

build() { # PART: without it, if it is a library
    local settings=() other on
    for other in "${!option[@]}"; do
        on=ON
        [ "$other" != "$1" ] || on=OFF
        settings+=("-DANYTIME_${option[$other]}=$on")
    done
    cmake --preset without "${settings[@]}" | grep '✗' || [ "$1" = gnuplot ]
    cmake --build --preset without -j "$jobs" >build-without/build.log 2>&1 || {
        tail -40 build-without/build.log
        exit 1
    }
}

# A folder with links to all programs of PATH but gnuplot.
hide_gnuplot() {
    local folder
    rm -rf build-without/path
    mkdir -p build-without/path
    while read -r -d : folder; do
        [ -d "$folder" ] || continue
        find "$folder" -maxdepth 1 ! -type d ! -name 'gnuplot*' \
            -exec ln -s -t build-without/path {} + 2>/dev/null || true # the first of a name wins
    done <<<"$PATH:"
    echo "$PWD/build-without/path"
}

# One folder for all: only what changes from one to the next is built again.
for part in "$@"; do
    echo "--- without ${called[$part]}"
    build "$part"
    path=$PATH
    [ "$part" != gnuplot ] || path=$(hide_gnuplot)
    PATH=$path ANYTIME_WITHOUT=${called[$part]} \
        ctest --preset without -R "${tests[$part]}|^e2e[.]parts$"
done
