#!/bin/sh
# The demo: the same training under two strategies on ten workers, some of them slow, three times
# each. Every sample is padded to 300 us by sleeping, so ten workers behave like ten machines even
# on two cores. Takes about 100 seconds.
#
# Further options are passed on and take precedence: tools/demo.sh --repeats 5
set -eu
cd "$(dirname "$0")/.."

out=runs/demo
rm -rf "$out" # compare refuses an existing folder; the previous demo is not worth keeping
"${ANYTIME:-build/anytime}" compare fmb amb \
    --data fashion-mnist --model softmax --lr 0.05 \
    --workers 10 --batch 64 --micro-batch 4 --sample-time 300us \
    --straggler niagara --straggler-scale 20% \
    --target accuracy=0.80 --eval-every 5 --repeats 3 --seed 1 --out "$out" "$@"

if [ -f "$out/accuracy-vs-time.png" ]; then
    echo
    echo "Plot: $out/accuracy-vs-time.png; each run has its own folder in $out."
fi
