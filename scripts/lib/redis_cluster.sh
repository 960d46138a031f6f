# shellcheck shell=bash
# A Redis Cluster of three masters: three instances of kind redis in DIR/redis-cluster/node-N, on PORT to
# PORT + 2, their cluster buses on PORT + 3 to PORT + 5.

CLUSTER_NODES=(0 1 2)

cluster_node() {
  local action=$1 node=$2
  shift 2
  "$FCAP_ROOT/scripts/service" redis "$action" --dir "$CLUSTER_DIR/node-$node" ${OWNER:+--owner "$OWNER"} \
    ${PORT_ENV:+--port-env "$PORT_ENV"} "$@"
}

# cluster_on_nodes ACTION: on --node, or on all of them at once. The worst exit code counts.
cluster_on_nodes() {
  local node code=0 pids=() pid one
  if [[ -n $NODE ]]; then
    [[ -d $CLUSTER_DIR/node-$NODE ]] || die_usage "--node $NODE: there is no such node in $DIR"
    cluster_node "$1" "$NODE"
    return
  fi
  for node in "${CLUSTER_NODES[@]}"; do
    [[ -d $CLUSTER_DIR/node-$node ]] || continue
    cluster_node "$1" "$node" >"$CLUSTER_DIR/node-$node/out" &
    pids+=($!)
  done
  for pid in ${pids[@]+"${pids[@]}"}; do
    wait "$pid" && one=0 || one=$?
    ((one <= code)) || code=$one
  done
  return "$code"
}

cluster_formed() {
  local node
  for node in "${CLUSTER_NODES[@]}"; do
    [[ $(redis-cli -h 127.0.0.1 -p $((PORT + node)) cluster info 2>/dev/null) == *cluster_state:ok* ]] || return 1
  done
}

cluster_start_nodes() {
  local node pids=() pid
  for node in "${CLUSTER_NODES[@]}"; do
    mkdir -p "$CLUSTER_DIR/node-$node"
    cluster_node start "$node" --port $((PORT + node)) -- --cluster-enabled yes \
      --cluster-port $((PORT + 3 + node)) --cluster-node-timeout 2000 --cluster-config-file nodes.conf \
      ${EXTRA[@]+"${EXTRA[@]}"} >"$CLUSTER_DIR/node-$node/out" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || return $?; done
}

cluster_create() {
  redis-cli --cluster create "127.0.0.1:$PORT" "127.0.0.1:$((PORT + 1))" "127.0.0.1:$((PORT + 2))" \
    --cluster-yes >"$CLUSTER_DIR/create.log" 2>&1 </dev/null
}

cluster_start() {
  local deadline started=no
  if [[ -n $NODE ]]; then
    cluster_node start "$NODE"
    return
  fi
  mkdir -p "$CLUSTER_DIR"
  exec {CLUSTER_LOCK_FD}>"$CLUSTER_DIR/lock"
  flock -w 120 "$CLUSTER_LOCK_FD" || die "another command holds $CLUSTER_DIR"
  PORT=$PORT_ASKED
  if [[ -z $PORT || $PORT == 0 ]]; then
    PORT=$(sed -n 's/^port=//p' "$CLUSTER_DIR/node-0/redis/instance" 2>/dev/null || true)
    PORT=${PORT:-$(choose_port 6 "$CLUSTER_DIR")}
  fi
  cluster_start_nodes
  grep -qsx started=yes "$CLUSTER_DIR"/node-*/out && started=yes
  [[ $(redis-cli -p "$PORT" cluster info) == *cluster_slots_assigned:16384* ]] ||
    cluster_create || { cat "$CLUSTER_DIR/create.log" >&2; die "the cluster could not be created"; }
  deadline=$((SECONDS + ${TIMEOUT_SECONDS:-20}))
  until cluster_formed; do
    ((SECONDS < deadline)) || die "the cluster did not reach cluster_state:ok"
    nap 0.05
  done
  printf 'kind=redis-cluster\nport=%s\ndir=%s\naddresses=127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s\nstarted=%s\n' \
    "$PORT" "$CLUSTER_DIR" "$PORT" $((PORT + 1)) $((PORT + 2)) "$started"
}

cluster_action() {
  CLUSTER_DIR=$DIR/redis-cluster
  case $ACTION in
    start) cluster_start ;;
    stop | kill | freeze | thaw) cluster_on_nodes "$ACTION" ;;
    restart)
      cluster_on_nodes stop
      cluster_start
      ;;
    status)
      cluster_on_nodes status && ACTION=0 || ACTION=$?
      if [[ -z $NODE ]]; then cat "$CLUSTER_DIR"/node-*/out 2>/dev/null || true; fi
      return "$ACTION"
      ;;
    *) die_usage "unknown action: $ACTION" ;;
  esac
}
