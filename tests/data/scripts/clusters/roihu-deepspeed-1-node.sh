#!/bin/bash
# A job for Roihu. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=<project>
#SBATCH --partition=gpumedium
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=288
#SBATCH --gres=gpu:gh200:4
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module load python-pytorch

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# All processes connect to the first node. The port depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# deepspeed runs once on each node, and starts a process for each GPU.
srun deepspeed --num_gpus=4 --master_port="$MASTER_PORT" train.py
