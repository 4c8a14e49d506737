#!/bin/bash -l
# A job for ARC4. Submit this script with: qsub FILE

# The request.
#$ -N job
#$ -cwd
#$ -l nodes=2,ppn=40,tpp=1
#$ -l h_rt=01:00:00
#$ -r y

# 60 s before the time limit, a timer sends SIGUSR1 to all processes of this job.
# The program should then write its checkpoint and end.
signalled=
trap 'signalled=yes' USR1
trap 'trap "" TERM; kill 0' EXIT # ends the timer
(sleep 3540 && kill -USR1 0) &

# Lines that every job on this cluster needs.
unset GOMP_CPU_AFFINITY KMP_AFFINITY

# Each process uses one thread for each of its cores.
export OMP_NUM_THREADS=1

# The program runs once, on the first node. The program itself starts the other tasks, as mpirun does.
mpirun ./solver
status=$?
# With exit code 99, Grid Engine queues the job again.
[ -z "$signalled" ] || exit 99
exit "$status"
