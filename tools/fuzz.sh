#!/bin/sh
# Searches for inputs that break a fuzz target. Usage: tools/fuzz.sh TARGET|. SECONDS JOBS
# Failing inputs go to build-fuzz/found/, new corpus entries to build-fuzz/corpus/.
set -eu

if ! command -v clang >/dev/null; then
    echo "fuzz: clang is missing; run: tools/deps.sh tools/packages-clang.txt" >&2
    exit 1
fi

pattern=$1 seconds=$2 jobs=$3
# Short stacks of allocations: most targets allocate a lot. Long inputs are only slow.
export ASAN_OPTIONS=handle_abort=1:allocator_may_return_null=1:malloc_context_size=6
cmake --preset fuzz >/dev/null

names=$(cd tests/fuzz && ls ./*/*.c | sed 's|^\./||; s|/|_|; s|\.c$||' | grep -e "$pattern") || {
    echo "fuzz: no target matches '$pattern'" >&2
    exit 1
}
for name in $names; do
    cmake --build --preset fuzz -j "$jobs" --target "fuzz_$name" >/dev/null
    mkdir -p "build-fuzz/corpus/$name" build-fuzz/found
    echo "fuzz: $name for $seconds seconds"
    "build-fuzz/tests/fuzz_$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=3000 \
        -max_len=8192 -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/found/$name-" \
        "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
echo "fuzz: no failing input found"
