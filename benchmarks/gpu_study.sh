#!/usr/bin/env bash
# Everything worth doing in ten minutes of one large GPU: step times of every system against base-dot, then the study at
# the paper's size, several runs on one card, the most telling first, each recorded when it ends.
#
#   benchmarks/gpu_study.sh OUT [options of gpu_study.py]      PYTHON=/path/to/python3 for another interpreter
#
# Needs torch, numpy and safetensors, and the text: FOURIERQK_DATA names its folder, or --text its file. OUT receives
# step_times.json, records.tar.gz and log.txt; the weights stay in runs/gpu. Repeated, it goes on where it was.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: $0 OUT [--text FILE] [--minutes M] [--jobs J] [...]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
"${PYTHON:-python3}" benchmarks/gpu_study.py "$out" "$@" 2>&1 | tee -a "$out/log.txt"
