#!/bin/bash
# A job for Trillium. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=96
#SBATCH --gpus-per-node=4
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module load StdEnv/2023 cuda/12.6 python/3.11.5
source ~/myenv/bin/activate

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# All processes connect to the first node. The port depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# torchrun runs once on each node, and starts a process for each GPU.
srun torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=4 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
  train.py
