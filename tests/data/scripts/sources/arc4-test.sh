#!/bin/bash -l
# A job for ARC4. Submit this script with: qsub FILE

# The request.
#$ -N test_GPU
#$ -cwd
#$ -l coproc_v100=1
#$ -l h_rt=00:15:00
#$ -o output.log
#$ -e error.log
#$ -m be

# Lines that every job on this cluster needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# Your own lines.
nvidia-smi
conda activate pytorch-gpu

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=10

# The program.
python test_GPU.py
