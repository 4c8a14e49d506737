#!/bin/bash
# A job for Puhti. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --account=project_2001234
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=40
#SBATCH --mem=372G
#SBATCH --gres=gpu:v100:4,nvme:100
#SBATCH --time=2:00:00
#SBATCH --no-requeue

# The software.
module purge
module load pytorch

# One thread for each core of a process.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# Copy the data to each node's local disk: $LOCAL_SCRATCH
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
  tar -xf data.tar -C "$LOCAL_SCRATCH" || exit 1

# The processes connect to the first node, to a port that depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# torchrun, once on each node; it starts a process for each GPU.
srun torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=4 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
  train.py
