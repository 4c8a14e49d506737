#!/bin/bash
# A job for Narval. Submit this script with: sbatch FILE

# The request. The amounts of memory, GPUs and disk are for each node.
#SBATCH --account=def-myself_cpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=32000M
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

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# srun gives each task this number of cores. srun does not read the number from the request.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# srun starts the program as a job step, so Slurm measures what the program uses.
srun python train.py
