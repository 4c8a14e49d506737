#!/bin/bash
# A job for LUMI. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --account=project_462000123
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=56
#SBATCH --mem=480G
#SBATCH --gpus-per-node=8
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module purge
module use /appl/local/laifs/modules
module load lumi-aif-singularity-bindings
export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif

# One thread for each core of a process.
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 8))
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# Communication between the nodes, and the caches of each node.
export FI_MR_CACHE_MONITOR="userfaultfd"
export MIOPEN_CUSTOM_CACHE_DIR="/tmp/miopen-cache-$USER"
export MIOPEN_USER_DB_PATH="/tmp/miopen-config-$USER"
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" --ntasks-per-node=1 \
  mkdir -p "/tmp/miopen-cache-$USER" "/tmp/miopen-config-$USER"

# The processes connect to the first node, to a port that depends on the job's number.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT

# torchrun, once on each node; it starts a process for each GPU.
srun singularity run $SIF torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=8 \
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
  train.py
