#!/usr/bin/env bash
# The tests of PyTorch scripts with the newest PyTorch of PyPI, in a virtual environment that is
# made once (build/torch2; plain `pip install torch` brings several GB of CUDA packages).
# TORCH_INDEX can name another package index, such as https://download.pytorch.org/whl/cpu.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=$PWD/build/torch2
if ! "$environment/bin/python3" -c 'import torch, numpy' 2>/dev/null; then
    /usr/bin/python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch numpy
fi
"$environment/bin/python3" -c 'import torch; print("PyTorch", torch.__version__)'

export ANYTIME=$PWD/build/anytime SEAT_WORKER=$PWD/build/tests/seat_worker
export ANYTIME_TORCH_UPDATE=$PWD/build/tests/torch_update PYTHON=$environment/bin/python3
for test in torch_right torch_scripts torch_ends torch_memory torch_updates; do
    mkdir -p "build/tests/e2e/$test"
    (cd "build/tests/e2e/$test" && timeout 600 "$PYTHON" "../../../../tests/e2e/$test.py")
done
