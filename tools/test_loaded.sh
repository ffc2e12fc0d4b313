#!/usr/bin/env bash
# Runs tests again and again while something else keeps every core busy, and stops at the first
# failure. Usage: tools/test_loaded.sh TESTS LABELS TIMES (two regular expressions and a number)
set -euo pipefail
cd "$(dirname "$0")/.."

tests=$1 labels=$2 times=$3
load=()
end_load() { kill "${load[@]}" 2>/dev/null || true; }
trap end_load EXIT
for _ in $(seq "$(nproc)"); do
    sh -c 'while :; do :; done' &
    load+=($!)
done
ctest --preset default -R "$tests" -L "$labels" --repeat "until-fail:$times"
echo "test-loaded: no test failed in $times runs with every core busy"
