-- Running the rules: who changed what and when, shrinking on purpose, and which process runs which version.
-- docs/rules-sql.md describes the tables and shows the statements for each.

-- A shrink up to this version is meant (fcap_accept_rules(), fcap_accept_segments()).
ALTER TABLE rule_set_version ADD COLUMN accepted_version bigint;
ALTER TABLE segment_set_version ADD COLUMN accepted_version bigint;

CREATE TABLE rule_history (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version bigint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The account that logged in, whatever role it has taken since.
  changed_by text NOT NULL DEFAULT session_user,
  table_name text NOT NULL,
  operation text NOT NULL CONSTRAINT rule_history_operation_known
    CHECK (operation IN ('baseline', 'insert', 'update', 'delete', 'truncate', 'accept')),
  row_key text,
  old_row jsonb,
  new_row jsonb
);
CREATE INDEX rule_history_by_version ON rule_history (version);
CREATE INDEX rule_history_by_row ON rule_history (table_name, row_key, id);

INSERT INTO rule_history (version, table_name, operation, row_key, new_row)
SELECT v.version, r.table_name, 'baseline', r.row_key, r.new_row
  FROM rule_set_version v,
       (SELECT 'campaigns' AS table_name, id AS row_key, to_jsonb(c) AS new_row FROM campaigns c
        UNION ALL
        SELECT 'cap_rules', id, to_jsonb(c) FROM cap_rules c
        UNION ALL
        SELECT 'campaign_groups', jsonb_build_array(campaign_id, group_id)::text, to_jsonb(c)
          FROM campaign_groups c) r;

-- Raises the version when rows have really changed, and writes down which. A statement that finds no row, or writes
-- what is there already, makes nobody load the rules again.
CREATE OR REPLACE FUNCTION fcap_bump_rule_set_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed boolean := true;
  rows_changed text;
  new_version bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
                   JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
                   JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
                  WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME AND c.relnamespace = p.pronamespace) THEN
    RAISE EXCEPTION 'fcap_bump_rule_set_version() is for the tables of its own schema, not for %',
        TG_RELID::pg_catalog.regclass USING ERRCODE = 'insufficient_privilege';
  END IF;
  CASE TG_OP
    WHEN 'INSERT' THEN
      SELECT EXISTS (SELECT FROM new_rows) INTO changed;
      rows_changed := 'SELECT NULL::jsonb AS o, pg_catalog.to_jsonb(t) AS n FROM new_rows t';
    WHEN 'DELETE' THEN
      SELECT EXISTS (SELECT FROM old_rows) INTO changed;
      rows_changed := 'SELECT pg_catalog.to_jsonb(t) AS o, NULL::jsonb AS n FROM old_rows t';
    WHEN 'UPDATE' THEN
      SELECT EXISTS (SELECT * FROM new_rows EXCEPT ALL SELECT * FROM old_rows) INTO changed;
      -- A row whose key has changed is one that went and one that came.
      rows_changed := 'SELECT x.r AS o, y.r AS n
        FROM (SELECT pg_catalog.to_jsonb(t) AS r FROM old_rows t) x
        FULL JOIN (SELECT pg_catalog.to_jsonb(t) AS r FROM new_rows t) y
          ON (x.r ->> ''id'', x.r ->> ''campaign_id'', x.r ->> ''group_id'')::text
           = (y.r ->> ''id'', y.r ->> ''campaign_id'', y.r ->> ''group_id'')::text
       WHERE x.r IS DISTINCT FROM y.r';
    ELSE
      NULL;
  END CASE;
  IF NOT changed THEN
    RETURN NULL;
  END IF;
  EXECUTE pg_catalog.format(
    'INSERT INTO %I.rule_set_version AS v (version) VALUES (1) ON CONFLICT (only_row)
     DO UPDATE SET version = v.version + 1, changed_at = pg_catalog.clock_timestamp()
     RETURNING v.version', TG_TABLE_SCHEMA) INTO new_version;
  IF rows_changed IS NULL THEN
    EXECUTE pg_catalog.format(
      'INSERT INTO %I.rule_history (version, table_name, operation) VALUES ($1, $2, ''truncate'')', TG_TABLE_SCHEMA)
      USING new_version, TG_TABLE_NAME;
  ELSE
    EXECUTE pg_catalog.format(
      'INSERT INTO %I.rule_history (version, table_name, operation, row_key, old_row, new_row)
       SELECT $1, $2, CASE WHEN o IS NULL THEN ''insert'' WHEN n IS NULL THEN ''delete'' ELSE ''update'' END,
              coalesce(coalesce(n, o) ->> ''id'',
                       pg_catalog.jsonb_build_array(coalesce(n, o) -> ''campaign_id'',
                                                    coalesce(n, o) -> ''group_id'')::text),
              o, n
         FROM (%s) r', TG_TABLE_SCHEMA, rows_changed)
      USING new_version, TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END
$$;

DROP TRIGGER campaigns_bump_version ON campaigns;
DROP TRIGGER campaign_groups_bump_version ON campaign_groups;
DROP TRIGGER cap_rules_bump_version ON cap_rules;

CREATE TRIGGER campaigns_inserted AFTER INSERT ON campaigns REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaigns_updated AFTER UPDATE ON campaigns REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaigns_deleted AFTER DELETE ON campaigns REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaigns_truncated AFTER TRUNCATE ON campaigns
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();

CREATE TRIGGER campaign_groups_inserted AFTER INSERT ON campaign_groups REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaign_groups_updated AFTER UPDATE ON campaign_groups
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaign_groups_deleted AFTER DELETE ON campaign_groups REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaign_groups_truncated AFTER TRUNCATE ON campaign_groups
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();

CREATE TRIGGER cap_rules_inserted AFTER INSERT ON cap_rules REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER cap_rules_updated AFTER UPDATE ON cap_rules REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER cap_rules_deleted AFTER DELETE ON cap_rules REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER cap_rules_truncated AFTER TRUNCATE ON cap_rules
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();

-- The bodies below are parsed here, so that they mean the tables of this schema whatever the caller's search_path is.

-- What has shrunk is meant: every process takes it. Gives the version that says so.
CREATE FUNCTION fcap_accept_rules() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE rule_set_version
     SET version = version + 1, accepted_version = version + 1, changed_at = clock_timestamp();
  INSERT INTO rule_history (version, table_name, operation)
  SELECT version, 'rule_set_version', 'accept' FROM rule_set_version;
  SELECT version FROM rule_set_version;
END;

CREATE FUNCTION fcap_accept_segments() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE segment_set_version
     SET version = version + 1, accepted_version = version + 1, changed_at = clock_timestamp()
  RETURNING version;
END;

-- The rows as they were once a version had been made.
CREATE FUNCTION fcap_rules_at(at_version bigint)
RETURNS TABLE (table_name text, row_key text, content jsonb)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT last_change.table_name, last_change.row_key, last_change.new_row
    FROM (SELECT DISTINCT ON (h.table_name, h.row_key) h.table_name, h.row_key, h.new_row
            FROM rule_history h
           WHERE h.version <= at_version AND h.row_key IS NOT NULL
             AND h.id > coalesce((SELECT max(t.id) FROM rule_history t
                                   WHERE t.table_name = h.table_name AND t.operation = 'truncate'
                                     AND t.version <= at_version), 0)
           ORDER BY h.table_name, h.row_key, h.id DESC) last_change
   WHERE last_change.new_row IS NOT NULL
   ORDER BY 1, 2;
END;

CREATE TABLE rule_set_status (
  account text NOT NULL,
  process text NOT NULL,
  version bigint,
  rules bigint NOT NULL,
  quarantined text,
  refused_why text,
  at timestamptz NOT NULL,
  PRIMARY KEY (account, process)
);

-- What a process says of itself. An account can write no rows but its own, and what has been silent for a day goes.
CREATE FUNCTION fcap_report_rules(process text, version bigint, rules bigint, quarantined text, refused_why text)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  DELETE FROM rule_set_status s WHERE s.at < now() - interval '1 day';
  INSERT INTO rule_set_status AS s (account, process, version, rules, quarantined, refused_why, at)
  VALUES (session_user, left(fcap_report_rules.process, 200), fcap_report_rules.version, fcap_report_rules.rules,
          left(fcap_report_rules.quarantined, 4000), left(fcap_report_rules.refused_why, 4000), now())
  ON CONFLICT (account, process) DO UPDATE
     SET version = excluded.version, rules = excluded.rules, quarantined = excluded.quarantined,
         refused_why = excluded.refused_why, at = excluded.at;
END;

REVOKE EXECUTE ON FUNCTION fcap_accept_rules(), fcap_accept_segments(), fcap_rules_at(bigint),
  fcap_report_rules(text, bigint, bigint, text, text) FROM PUBLIC;

COMMENT ON TABLE rule_history IS 'fcap: who changed which rule when; written by triggers';
COMMENT ON COLUMN rule_history.version IS 'the rule set version that the change made';
COMMENT ON COLUMN rule_history.changed_by IS 'the account that had logged in';
COMMENT ON COLUMN rule_history.operation IS 'baseline: the row was there when the history began; accept: fcap_accept_rules()';
COMMENT ON COLUMN rule_history.row_key IS 'the id; of campaign_groups, campaign and group as a JSON array';
COMMENT ON TABLE rule_set_status IS 'fcap: which process runs which rule set version, and why not a newer one';
COMMENT ON COLUMN rule_set_status.account IS 'the account with which the process logs in';
COMMENT ON COLUMN rule_set_status.process IS 'program@host:pid';
COMMENT ON COLUMN rule_set_status.version IS 'in use; NULL: the process has no rules yet';
COMMENT ON COLUMN rule_set_status.quarantined IS 'rules of this version that cannot be in force, one per line, and why';
COMMENT ON COLUMN rule_set_status.refused_why IS 'why a newer version was refused; NULL: none was';
COMMENT ON COLUMN rule_set_status.at IS 'when the process last said so; it repeats it every five minutes';

COMMENT ON COLUMN campaigns.id IS 'as the events and the ad server call the campaign';
COMMENT ON COLUMN campaigns.advertiser_id IS 'what rules for advertisers count by; NULL: none';
COMMENT ON COLUMN campaigns.cap_limit IS 'impressions per user in any window_seconds; 0: never shown; NULL: no cap of its own';
COMMENT ON COLUMN campaigns.window_seconds IS 'length of the sliding window';
COMMENT ON COLUMN campaigns.deleted_at IS 'from then on the campaign has no cap of its own; it still counts for its advertiser and groups';
COMMENT ON COLUMN campaign_groups.campaign_id IS 'a row of campaigns';
COMMENT ON COLUMN campaign_groups.group_id IS 'the name of the group, as in cap_rules.target';
COMMENT ON COLUMN cap_rules.id IS 'names the rule in verdicts, logs and reports';
COMMENT ON COLUMN cap_rules.scope IS 'what is counted together: campaign, creative, advertiser, group or user (everything)';
COMMENT ON COLUMN cap_rules.target IS 'which one; *: each one that has no rule of its own; NULL for the scope user';
COMMENT ON COLUMN cap_rules.event_type IS 'what is counted: impression, click, viewable or conversion';
COMMENT ON COLUMN cap_rules.cap_limit IS 'events per user and window; 0: never shown; NULL: not capped, which exempts from a default';
COMMENT ON COLUMN cap_rules.window_kind IS 'sliding, fixed (from the first event), calendar or lifetime (the retention)';
COMMENT ON COLUMN cap_rules.window_seconds IS 'length of a sliding or fixed window, to the millisecond';
COMMENT ON COLUMN cap_rules.calendar_unit IS 'hour, day, week or month of a calendar window';
COMMENT ON COLUMN cap_rules.time_zone IS 'IANA name of the calendar''s time zone; NULL: UTC';
COMMENT ON COLUMN cap_rules.week_start IS 'first day of a calendar week; NULL: monday';
COMMENT ON COLUMN cap_rules.segment IS 'the rule is for members of this segment only; NULL: for everybody';
COMMENT ON COLUMN cap_rules.starts_at IS 'in force from then on; NULL: always was';
COMMENT ON COLUMN cap_rules.ends_at IS 'no longer in force from then on; NULL: for good';
COMMENT ON COLUMN cap_rules.mode IS 'enforce, or shadow: counted and reported, never capping';
COMMENT ON COLUMN cap_rules.enforcement IS 'soft; hard is enforced as soft until hard caps are built';
COMMENT ON COLUMN cap_rules.enabled IS 'false: the rule is not loaded';
COMMENT ON COLUMN cap_rules.note IS 'for people';
COMMENT ON COLUMN rule_set_version.version IS 'grows with every change of the rules';
COMMENT ON COLUMN rule_set_version.changed_at IS 'tells apart two histories that reach the same version, as after a restored backup';
COMMENT ON COLUMN rule_set_version.accepted_version IS 'a shrink up to this version is meant (fcap_accept_rules())';
COMMENT ON COLUMN segments.id IS 'as cap_rules.segment names it';
COMMENT ON COLUMN segments.bitmap IS 'members with canonical decimal ids: a portable 64-bit roaring bitmap';
COMMENT ON COLUMN segments.note IS 'for people';
COMMENT ON COLUMN segment_members.segment_id IS 'the segment; it needs no row in segments';
COMMENT ON COLUMN segment_members.user_id IS 'a member';
COMMENT ON COLUMN segment_set_version.version IS 'grows with every change of the segments';
COMMENT ON COLUMN segment_set_version.changed_at IS 'as in rule_set_version';
COMMENT ON COLUMN segment_set_version.accepted_version IS 'a shrink up to this version is meant (fcap_accept_segments())';
COMMENT ON COLUMN rule_set_version.only_row IS 'keeps the table to one row';
COMMENT ON COLUMN segment_set_version.only_row IS 'keeps the table to one row';
COMMENT ON COLUMN rule_history.id IS 'the order of the changes';
COMMENT ON COLUMN rule_history.changed_at IS 'when';
COMMENT ON COLUMN rule_history.table_name IS 'the table that was changed';
COMMENT ON COLUMN rule_history.old_row IS 'the row before; NULL: it was not there';
COMMENT ON COLUMN rule_history.new_row IS 'the row afterwards; NULL: it is gone';
COMMENT ON COLUMN rule_set_status.rules IS 'how many rules the process has in force';
COMMENT ON DOMAIN fcap_id IS 'fcap: an id as the events carry it, text of 1 to 256 bytes';
