#!/bin/bash
cd "$(dirname "$0")" || exit 1
"${PYTHON:-python}" -m torch.distributed.run --standalone --nproc_per_node 2 ddp_speech.py
