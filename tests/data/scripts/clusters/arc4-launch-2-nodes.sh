#!/bin/bash -l
# A job for ARC4. Submit this script with: qsub FILE

# The request.
#$ -N job
#$ -cwd
#$ -l nodes=2,ppn=40,tpp=1
#$ -l h_rt=01:00:00

# Lines that every job on this cluster needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# The software.
module load anaconda
source activate pytorch-gpu

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=40

# The name of this cluster, for `teho launch`.
export TEHO_CLUSTER=arc4

# The mpirun of Open MPI starts the program once on each node.
mpirun --map-by ppr:1:node --bind-to none \
  -x OMP_NUM_THREADS -x TEHO_CLUSTER \
  teho run -- teho launch -- python train.py
