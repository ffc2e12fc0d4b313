#!/usr/bin/env bash
# The tests of PyTorch scripts with the newest PyTorch. TORCH2 names a Python with torch and numpy,
# or its virtual environment; otherwise one is made, once, in build/torch2 (tools/torch2_env.py).
# Words select tests: tools/test_torch2.sh torch_options
set -euo pipefail
cd "$(dirname "$0")/.."

python=${TORCH2:-$PWD/build/torch2}
if [ -z "${TORCH2:-}" ]; then
    tools/torch2_env.py "$python"
fi
if [ -d "$python" ]; then
    python=$python/bin/python3
fi
"$python" -c 'import numpy, torch; print("PyTorch", torch.__version__, "numpy", numpy.__version__)'

export ANYTIME=$PWD/build/anytime SEAT_WORKER=$PWD/build/tests/seat_worker
export ANYTIME_TORCH_UPDATE=$PWD/build/tests/torch_update PYTHON=$python
all=(torch_updates torch_gradients torch_right torch_options torch_scripts torch_ends
    torch_memory torch_checkpoints own_model_python)
failed=()
for test in "${@:-${all[@]}}"; do
    echo "== $test"
    folder=build/tests/torch2/$test
    mkdir -p "$folder"
    (cd "$folder" && timeout 1800 "$python" "../../../../tests/e2e/$test.py") ||
        [ $? -eq 77 ] || failed+=("$test")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed with the newest PyTorch: ${failed[*]}" >&2
    exit 1
fi
echo "no test failed with the newest PyTorch"
