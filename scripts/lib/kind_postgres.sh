# shellcheck shell=bash
# PostgreSQL: Debian's packaged server in a cluster of its own, loopback only, without passwords and without
# fsync: for development and tests, never for data that matters.

postgres_ports() { echo 1; }
postgres_default_timeout() { echo 30; }
postgres_stop_signal() { echo INT; } # "fast": open sessions are ended, then an orderly shutdown

postgres_find_binaries() {
  local candidate
  PG_BIN=
  for candidate in /usr/lib/postgresql/*/bin; do
    if [[ -x $candidate/initdb && -x $candidate/postgres ]]; then PG_BIN=$candidate; fi
  done
  [[ -n $PG_BIN ]] || die "PostgreSQL's server is missing; run ./dev build once, or: apt-get install postgresql"
}

# PostgreSQL refuses to run as root. The extra capability lets the account reach a directory below, say,
# /root; it gives the account nothing but reading, and only in this server.
postgres_as_account() {
  AS_ACCOUNT=()
  ((EUID == 0)) || return 0
  getent passwd postgres >/dev/null || die "the account postgres is missing; run ./dev build once, or: apt-get install postgresql"
  AS_ACCOUNT=(setpriv --reuid=postgres --regid=postgres --init-groups)
  # Not test -x: access(2) leaves the capability out of account.
  if ! "${AS_ACCOUNT[@]}" stat "$HOME_DIR/." >/dev/null 2>&1; then
    AS_ACCOUNT+=(--inh-caps=+dac_read_search --ambient-caps=+dac_read_search)
    "${AS_ACCOUNT[@]}" stat "$HOME_DIR/." >/dev/null 2>&1 ||
      die "PostgreSQL must run as the account postgres, which cannot reach $HOME_DIR; choose another directory"
  fi
  AS_ACCOUNT+=(--)
}

postgres_prepare() {
  require_tool psql postgresql-client
  postgres_find_binaries
  postgres_as_account
  if [[ -f $HOME_DIR/data/PG_VERSION ]]; then
    # What a killed server leaves behind: its pid is known to be dead here.
    rm -f "$HOME_DIR/data/postmaster.pid"
    return 0
  fi
  rm -rf "$HOME_DIR/data"
  mkdir -p "$HOME_DIR/data"
  chmod 700 "$HOME_DIR/data"
  if ((EUID == 0)); then chown postgres:postgres "$HOME_DIR/data"; fi
  if ! (cd / && ${AS_ACCOUNT[@]+"${AS_ACCOUNT[@]}"} "$PG_BIN/initdb" -D "$HOME_DIR/data" -U postgres --auth=trust \
    --encoding=UTF8 --locale=C.UTF-8 --no-sync --no-instructions) >>"$LOG" 2>&1; then
    say "error: initdb failed"
    log_tail
    rm -rf "$HOME_DIR/data"
    exit 1
  fi
}

postgres_command() {
  COMMAND=(${AS_ACCOUNT[@]+"${AS_ACCOUNT[@]}"} "$PG_BIN/postgres" -D "$HOME_DIR/data" -p "$PORT"
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c synchronous_commit=off
    -c full_page_writes=off -c shared_buffers=32MB -c max_connections=60 -c jit=off ${EXTRA[@]+"${EXTRA[@]}"})
}

postgres_psql() {
  PGCONNECT_TIMEOUT=2 PGOPTIONS='' psql -XAtq -v ON_ERROR_STOP=1 \
    "host=127.0.0.1 port=$PORT user=postgres dbname=$1" -c "$2"
}

postgres_ready() {
  [[ $(sed -n 8p "$HOME_DIR/data/postmaster.pid" 2>/dev/null) == ready* ]] || return 1
  [[ $(postgres_psql postgres 'SELECT 1' 2>>"$LOG") == 1 ]]
}

postgres_started() {
  [[ -n $DATABASE ]] || return 0
  [[ $DATABASE =~ ^[a-z_][a-z0-9_]*$ ]] || die_usage "--database: a name of a-z, 0-9 and _"
  [[ $(postgres_psql postgres "SELECT 1 FROM pg_database WHERE datname = '$DATABASE'") == 1 ]] ||
    postgres_psql postgres "CREATE DATABASE $DATABASE"
}

postgres_describe() {
  printf 'conninfo=host=127.0.0.1 port=%s user=postgres dbname=%s\n' "$PORT" "${DATABASE:-postgres}"
}
