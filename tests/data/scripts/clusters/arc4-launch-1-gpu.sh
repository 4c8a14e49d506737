#!/bin/bash -l
# A job for ARC4. Submit it with: qsub FILE

# What it asks for.
#$ -N job
#$ -cwd
#$ -l coproc_v100=1
#$ -l h_rt=01:00:00

# What every job here needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# The software.
module load anaconda
source activate pytorch-gpu

# Which cluster this is, for `teho launch`.
export TEHO_CLUSTER=arc4

# The program.
teho run -- teho launch -- python train.py
