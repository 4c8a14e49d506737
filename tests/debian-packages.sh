#!/bin/sh
# Debian packages that tests use, installed where that is possible; tests that miss one
# skip and say so. Quick when all are there; starts no daemon.
set -eu

lacking=""
note() { # PROGRAM[|PROGRAM] PACKAGES: note the packages if no such program is there
    for program in $(echo "$1" | tr '|' ' '); do
        # Debian's daemons lie where an ordinary user's PATH does not lead.
        if PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null; then return; fi
    done
    lacking="$lacking $2"
}
note 'chromium|google-chrome' chromium
note slurmctld slurmctld
note slurmd slurmd
note sbatch slurm-client
note slurmdbd slurmdbd
note munged munge
note mariadbd mariadb-server
note sge_qmaster gridengine-master
note sge_execd gridengine-exec
note qsub gridengine-client
note shellcheck shellcheck
note mpirun openmpi-bin
note ip iproute2
note unshare util-linux
note envml environment-modules
note bindfs bindfs
note rsync rsync
note tmux tmux
note sshd openssh-server
note prometheus prometheus
note victoria-metrics victoria-metrics
note nginx nginx-light
if [ "${1:-}" = soak ]; then note java default-jre-headless; fi
[ -e /usr/share/lmod/lmod/init/bash ] || lacking="$lacking lmod"
if [ -z "$lacking" ]; then exit 0; fi

skipped="tests in a browser need chromium, those on a real Slurm slurmctld, slurmd, slurm-client,
slurmdbd, munge and mariadb-server, those on a real Grid Engine gridengine-master, -exec and
-client, one of scripts shellcheck, those of Open MPI openmpi-bin, those on two nodes of a Grid Engine
iproute2 and util-linux too, those of modules environment-modules and lmod, those of teho stage rsync
and openssh-server, those of stores prometheus and victoria-metrics, those of the portal behind a
proxy nginx-light, those of Spark (in make soak) default-jre-headless; they are skipped without them."
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Not there, and no root on Debian to install it:$lacking. Of the tests, $skipped"
    exit 0
fi
echo "Installing for the tests:$lacking"

# While it is there, packages start no daemon; a machine's own policy stays as it is.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null 2>&1 || true
install() { apt-get -qq install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >/dev/null 2>&1; }
unpack_lmod() { # its package conflicts with environment-modules, its files do not
    install lua5.3 lua-posix lua-filesystem lua-json lua-term tcl || return
    folder=$(mktemp -d)
    (
        cd "$folder" && apt-get -qq download lmod >/dev/null 2>&1 && dpkg-deb -x lmod_*.deb files &&
            cp -R files/usr/lib/lmod /usr/lib/ && cp -R files/usr/share/lmod /usr/share/
    )
}
for package in $lacking; do # one by one: what can be had is had
    if [ "$package" = lmod ]; then unpack_lmod; else install "$package"; fi ||
        echo "$package could not be installed. Of the tests, $skipped"
done
