#!/bin/bash
# A job for Cedar. Submit it with: sbatch FILE

# The request. Memory, GPUs and disk are for each node.
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:v100l:1
#SBATCH --time=1:00:00
#SBATCH --no-requeue

# The software.
module load StdEnv/2023 python
srun -N $SLURM_NNODES -n $SLURM_NNODES bash -e << EOF || exit 1
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
pip install --no-index torch
EOF
source $SLURM_TMPDIR/env/bin/activate

# One thread for each core of a process.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. It does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# The program, as a step: Slurm counts what the program uses.
srun python train.py
