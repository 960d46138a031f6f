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

# kafka_java [java options] -- MAIN [arguments]: sets COMMAND.
kafka_java() {
  COMMAND=(java -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn
    -Dorg.slf4j.simpleLogger.showDateTime=true
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS" "-Djava.io.tmpdir=$HOME_DIR")
  while [[ $1 != -- ]]; do
    COMMAND+=("$1")
    shift
  done
  shift
  COMMAND+=(-cp "$KAFKA_HOME/jars/*" "$@")
}

# Formatting needs a JVM of its own (two seconds), and every instance of ours may look alike: loopback only,
# one node. So it is done once and copied.
kafka_format() {
  rm -rf "$KAFKA_HOME/formatted.new"
  kafka_write_properties "$HOME_DIR/format.properties" "$KAFKA_HOME/formatted.new"
  kafka_java -Xmx128m -- kafka.tools.StorageTool format -t "$KAFKA_CLUSTER_ID" -c "$HOME_DIR/format.properties"
  "${COMMAND[@]}" >>"$LOG" 2>&1 || {
    log_tail
    die "Kafka's storage could not be formatted"
  }
  mv "$KAFKA_HOME/formatted.new" "$KAFKA_HOME/formatted"
}

# An archive of loaded classes, written by one start and stop of a broker, halves the processor time of every
# later start. The JVM ignores one that does not fit it; without one, all goes on, only slower.
kafka_archive_classes() {
  local training=$HOME_DIR/training deadline pid
  say "preparing Apache Kafka (once, some seconds) …"
  cp -r "$KAFKA_HOME/formatted" "$training"
  kafka_write_properties "$HOME_DIR/training.properties" "$training"
  kafka_java -Xmx400m "-XX:ArchiveClassesAtExit=$KAFKA_ARCHIVE.new" -- kafka.Kafka "$HOME_DIR/training.properties"
  (
    close_inherited_fds
    exec timeout 90 "${COMMAND[@]}"
  ) </dev/null >>"$LOG" 2>&1 &
  pid=$!
  # shellcheck disable=SC2064  # this pid
  trap "kill $pid 2>/dev/null || true" EXIT
  deadline=$((SECONDS + 60))
  until kafka_ready || ((SECONDS >= deadline)); do nap 0.1; done
  kill -TERM "$pid" 2>/dev/null || true
  wait "$pid" || true
  trap - EXIT
  rm -rf "$training"
  if [[ -s $KAFKA_ARCHIVE.new ]]; then mv -f "$KAFKA_ARCHIVE.new" "$KAFKA_ARCHIVE"; else : >"$KAFKA_ARCHIVE"; fi
}

kafka_prepare_once() {
  KAFKA_HOME=$("$FCAP_ROOT/scripts/kafka/fetch")
  KAFKA_ARCHIVE=$KAFKA_HOME/classes-$(stat -Lc %Y-%s "$(command -v java)").jsa
  [[ -f $KAFKA_HOME/formatted/meta.properties && -f $KAFKA_ARCHIVE ]] && return 0
  exec {KAFKA_LOCK_FD}>"$KAFKA_HOME/lock"
  flock "$KAFKA_LOCK_FD"
  [[ -f $KAFKA_HOME/formatted/meta.properties ]] || kafka_format
  [[ -f $KAFKA_ARCHIVE ]] || kafka_archive_classes
  exec {KAFKA_LOCK_FD}>&-
}

kafka_prepare() {
  require_tool java openjdk-17-jre-headless
  require_tool kcat kcat
  require_tool perl perl-base
  kafka_prepare_once
  kafka_write_properties "$HOME_DIR/server.properties" "$HOME_DIR/data"
  if [[ ! -f $HOME_DIR/data/meta.properties ]]; then
    rm -rf "$HOME_DIR/data"
    cp -r "$KAFKA_HOME/formatted" "$HOME_DIR/data"
  fi
}

kafka_command() {
  local options=(-Xms128m "-Xmx${FCAP_KAFKA_HEAP_MB:-400}m")
  if [[ -s $KAFKA_ARCHIVE ]]; then options+=("-XX:SharedArchiveFile=$KAFKA_ARCHIVE" -Xlog:cds=off); fi
  if [[ -n ${FCAP_KAFKA_JAVA_OPTIONS:-} ]]; then
    # shellcheck disable=SC2206  # a list of words
    options+=($FCAP_KAFKA_JAVA_OPTIONS)
  fi
  kafka_java "${options[@]}" -- kafka.Kafka "$HOME_DIR/server.properties"
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
