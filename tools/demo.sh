#!/bin/sh
# The demo: the same training under two strategies on ten workers of which some are slow.
# Every sample is padded to 1 ms, so ten workers behave like ten machines even on two cores.
# Further options are handed on: tools/demo.sh --workers 4
set -eu
cd "$(dirname "$0")/.."

run=runs/demo
rm -rf "$run" # a run never overwrites another; the demo's own last one is not worth keeping
build/anytime compare fmb amb \
    --data fashion-mnist --model softmax --workers 10 --batch 64 --micro-batch 8 \
    --sample-time 1ms --straggler niagara --straggler-scale 20% \
    --target accuracy=0.80 --epochs 4 --seed 1 --run "$run" "$@"

echo
echo "Tables, plots and records of this comparison: $run"
