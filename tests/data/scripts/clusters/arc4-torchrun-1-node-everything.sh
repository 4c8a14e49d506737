#!/bin/bash -l
# A job for ARC4. Submit this script with: qsub FILE

# The request.
#$ -N all
#$ -cwd
#$ -l coproc_v100=4
#$ -l disk=2G
#$ -l h_rt=01:00:00
#$ -o job.log
#$ -j y
#$ -t 1-8
#$ -tc 2
#$ -hold_jid 11,12
#$ -r y

# 90 s before the time limit, a timer sends SIGUSR1 to all processes of this job.
# The program should then write its checkpoint and end.
signalled=
trap 'signalled=yes' USR1
trap 'trap "" TERM; kill 0' EXIT # ends the timer
(sleep 3510 && kill -USR1 0) &

# Lines that every job on this cluster needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# The software.
module load anaconda
source activate pytorch-gpu

# Your own lines.
source ~/tools.sh

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=10

# Copy the data to the node's local disk: $TMPDIR
tar -xf data.tar -C "$TMPDIR" || exit 1
cp -r labels.csv "$TMPDIR" || exit 1

# torchrun ignores the signal. The processes that torchrun starts get the signal.
teho run -- bash -c 'trap "" USR1; exec "$@"' launcher torchrun --standalone --nnodes=1 --nproc_per_node=4 train.py
status=$?
# With exit code 99, Grid Engine queues the job again.
[ -z "$signalled" ] || exit 99
exit "$status"
