#!/bin/bash -l
# A job for ARC4. Submit it with: qsub FILE

# What it asks for.
#$ -N test_GPU
#$ -cwd
#$ -l coproc_v100=1
#$ -l h_rt=00:15:00
#$ -o output.log
#$ -j y

# What every job here needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# Your own lines.
nvidia-smi
conda activate pytorch-gpu

# As many threads in each process as it has cores.
export OMP_NUM_THREADS=$NSLOTS

# The program.
python test_GPU.py
