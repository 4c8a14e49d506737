#!/bin/bash
# A job for LUMI. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --account=project_462000123
#SBATCH --partition=standard-g
#SBATCH --nodes=1
#SBATCH --ntasks=1
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
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program, as a step: Slurm counts what the program uses.
srun teho run -- singularity run $SIF python3 myprog.py --epochs 3
