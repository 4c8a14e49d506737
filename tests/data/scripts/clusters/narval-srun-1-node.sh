#!/bin/bash
# A job for Narval. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --mem=496G
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1:00:00
#SBATCH --signal=USR1@60
#SBATCH --no-requeue

# The software.
module load StdEnv/2023 python
srun -N $SLURM_NNODES -n $SLURM_NNODES bash -e << EOF || exit 1
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
pip install --no-index torch
EOF
source $SLURM_TMPDIR/env/bin/activate

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# All processes connect to the first node. The port depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# 60 s before the time limit, Slurm sends SIGUSR1 to the program.

# The program runs once for each GPU. The rank is known only inside the job step.
srun bash -c '
  export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
  exec "$@"' rank python train.py
