#!/bin/bash -l
# A job for ARC4. Submit it with: qsub FILE

# What it asks for.
#$ -N job
#$ -cwd
#$ -pe smp 8
#$ -l h_vmem=1280M
#$ -l h_rt=01:00:00

# What every job here needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# The software.
module load anaconda
source activate pytorch-gpu

# As many threads in each process as it has cores.
export OMP_NUM_THREADS=$NSLOTS

# The program.
python train.py
