#!/bin/bash -l
# A job for ARC4. Submit this script with: qsub FILE

# The request.
#$ -N job
#$ -cwd
#$ -l coproc_v100=1
#$ -l h_rt=01:00:00

# Lines that every job on this cluster needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# The software.
module load anaconda
source activate pytorch-gpu

# The name of this cluster, for `teho launch`.
export TEHO_CLUSTER=arc4

# The program.
teho run -- teho launch -- python train.py
