#!/usr/bin/env bash
# Which lines and branches the unit tests and the fast end-to-end tests execute, by layer; the pages
# are build-coverage/html/index.html. Usage: tools/coverage.sh [TESTS] [JOBS]
# TESTS is a regular expression for names of tests.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=${1:-.} jobs=${2:-2}
if ! command -v gcovr >/dev/null; then
    echo "coverage: gcovr is missing; run: apt-get install gcovr" >&2
    exit 1
fi

cmake --preset coverage >/dev/null
cmake --build --preset coverage -j "$jobs" >build-coverage/build.log 2>&1 || {
    tail -40 build-coverage/build.log
    exit 1
}
# Counts of an earlier call would be added to those of this one.
find build-coverage -name '*.gcda' -delete
ctest --preset coverage -j "$jobs" -R "$tests"

mkdir -p build-coverage/html
gcovr -j "$jobs" --root . --object-directory build-coverage --filter 'src/' \
    --exclude-unreachable-branches --json-summary build-coverage/coverage.json \
    --html-details build-coverage/html/index.html >/dev/null
tools/coverage_table.py build-coverage/coverage.json
echo "coverage: build-coverage/html/index.html has every line"
