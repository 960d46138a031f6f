# shellcheck shell=bash
# Apache Kafka: broker and KRaft controller in one JVM; PORT is the broker, PORT + 1 the controller.
# Arguments behind -- are lines for server.properties (key=value).

KAFKA_CLUSTER_ID=ZmNhcC1kZXYtY2x1c3Rlcg

kafka_ports() { echo 2; }
kafka_default_timeout() { echo 90; }
kafka_stop_signal() { echo TERM; }

kafka_write_properties() {
  cat >"$1" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((PORT + 1))
listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$((PORT + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$2
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
log.index.size.max.bytes=1048576
num.network.threads=2
num.io.threads=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
PROPERTIES
  if ((${#EXTRA[@]})); then printf '%s\n' "${EXTRA[@]}" >>"$1"; fi
}

# Formatting needs a JVM of its own (two seconds), and every instance of ours may look alike: loopback only,
# one node. So it is done once per user and copied.
kafka_format_template() {
  local template=$KAFKA_HOME/formatted
  [[ -f $template/meta.properties ]] && return 0
  exec {KAFKA_LOCK_FD}>"$KAFKA_HOME/lock"
  flock "$KAFKA_LOCK_FD"
  if [[ ! -f $template/meta.properties ]]; then
    rm -rf "$template.new"
    kafka_write_properties "$HOME_DIR/format.properties" "$template.new"
    java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$KAFKA_HOME/jars/*" kafka.tools.StorageTool \
      format -t "$KAFKA_CLUSTER_ID" -c "$HOME_DIR/format.properties" >>"$LOG" 2>&1 ||
      { log_tail; die "Kafka's storage could not be formatted"; }
    mv "$template.new" "$template"
  fi
  exec {KAFKA_LOCK_FD}>&-
}

kafka_prepare() {
  require_tool java openjdk-17-jre-headless
  require_tool kcat kcat
  KAFKA_HOME=$("$FCAP_ROOT/scripts/kafka/fetch")
  kafka_format_template
  kafka_write_properties "$HOME_DIR/server.properties" "$HOME_DIR/data"
  if [[ ! -f $HOME_DIR/data/meta.properties ]]; then
    rm -rf "$HOME_DIR/data"
    cp -r "$KAFKA_HOME/formatted" "$HOME_DIR/data"
  fi
}

kafka_command() {
  COMMAND=(java -Xms128m "-Xmx${FCAP_KAFKA_HEAP_MB:-400}m" -XX:+UseSerialGC -Xshare:auto
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS"
    -Djava.io.tmpdir="$HOME_DIR" -cp "$KAFKA_HOME/jars/*" kafka.Kafka "$HOME_DIR/server.properties")
}

kafka_ready() {
  port_busy "$PORT" || return 1
  [[ $(timeout 5 kcat -b "127.0.0.1:$PORT" -L -m 2 2>/dev/null) == *" 1 brokers"* ]]
}

kafka_started() { :; }
kafka_describe() { printf 'brokers=127.0.0.1:%s\n' "$PORT"; }

# create-topic NAME PARTITIONS [key=value…]: an existing topic is left as it is.
kafka_create_topic() {
  perl "$FCAP_ROOT/scripts/kafka/create-topic.pl" "$PORT_SAVED" "$@"
}
