#!/bin/sh
# mpirun over two machines, as far as MPI can tell: two network namespaces with a cable between them, each with a host
# name of its own, so that messages go by TCP and no memory is shared. Needs iproute2, Open MPI and the right to make
# namespaces, which Debian gives to everybody; they go when the command ends.
#
#   test/tools/two_hosts.sh RANKS COMMAND [WORD...]      RANKS on each, e.g.
#   test/tools/two_hosts.sh 1 build/bin/tilec tune k.tile --farm --sizes N=1000 x='uniform(1)[N]' y='nan[N]'
set -eu
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
PATH=$PATH:/usr/sbin:/sbin
[ -n "${TILE_TWO_HOSTS:-}" ] || # in namespaces of our own, /run and its names of networks included
    TILE_TWO_HOSTS=$(id -u) exec unshare --user --map-root-user --mount --net --pid --fork --mount-proc "$0" "$@"
ranks=$1
shift
mount -t tmpfs tmpfs /run
for host in one two; do
    ip netns add $host
    ip -n $host link set lo up
done
ip link add cable0 netns one type veth peer name cable0 netns two
ip -n one address add 10.99.0.1/24 dev cable0
ip -n two address add 10.99.0.2/24 dev cable0
ip -n one link set cable0 up
ip -n two link set cable0 up

# What mpirun takes for ssh: HOST COMMAND...
cat >/run/enter <<'END_OF_ENTER'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$1" && shift && eval "$*"' sh "$host" "$@"
END_OF_ENTER
chmod +x /run/enter
# By the words of Open MPI 4, then of 5. Root is the one of these namespaces.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=cable0
export OMPI_MCA_plm_rsh_agent=/run/enter OMPI_MCA_oob_tcp_if_include=cable0 OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_plm_ssh_agent=/run/enter PRTE_MCA_prte_if_include=cable0 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
ip netns exec one unshare --uts sh -c 'hostname one && exec "$@"' sh mpirun --host "one:$ranks,two:$ranks" "$@"
