-- fcap's schema: the catalog of campaigns, the rules, the segments, their versions, and what it takes to run them.
-- The words are those of docs/semantics.md; every column is described in docs/rules-sql.md and docs/segments.md.
--
-- All functions have a fixed search_path. The triggers' functions serve only the triggers of their own schema: two of
-- them run with their owner's rights, and whoever could attach them to another table could have them write to a
-- rule_set_version of his own, whose triggers would then run with those rights too.

-- The catalog: which campaigns there are, whose they are, and the simple way to cap one.

-- An id as the events carry it: any text of 1 to 256 bytes.
CREATE DOMAIN fcap_id AS text
  CONSTRAINT fcap_id_bytes CHECK (octet_length(VALUE) BETWEEN 1 AND 256);

CREATE TABLE campaigns (
  id fcap_id PRIMARY KEY,
  -- Text, not a reference: the advertisers' own table, if there is one, lives with whoever books campaigns.
  advertiser_id fcap_id,
  -- At most cap_limit impressions of the campaign to a user in any window_seconds. 0: never shown.
  -- NULL: the campaign has no cap of its own (the window is then only remembered).
  cap_limit integer,
  window_seconds integer,
  -- A deleted campaign has no cap of its own, and still counts towards its advertiser and groups.
  deleted_at timestamptz,
  CONSTRAINT campaigns_id_names_one CHECK (id <> '*'),
  CONSTRAINT campaigns_advertiser_names_one CHECK (advertiser_id <> '*'),
  CONSTRAINT campaigns_cap_limit_range CHECK (cap_limit >= 0),
  -- 400 days is the longest retention there is.
  CONSTRAINT campaigns_window_range CHECK (window_seconds BETWEEN 1 AND 34560000),
  CONSTRAINT campaigns_cap_needs_window CHECK (cap_limit IS NULL OR window_seconds IS NOT NULL)
);

CREATE TABLE campaign_groups (
  campaign_id fcap_id NOT NULL REFERENCES campaigns (id) ON UPDATE CASCADE ON DELETE CASCADE,
  group_id fcap_id NOT NULL,
  PRIMARY KEY (campaign_id, group_id),
  CONSTRAINT campaign_groups_group_names_one CHECK (group_id <> '*')
);
CREATE INDEX campaign_groups_by_group ON campaign_groups (group_id);

-- Every rule that is not "this campaign, so many in a sliding window": other scopes, windows, event types…

CREATE TABLE cap_rules (
  id fcap_id PRIMARY KEY,
  scope text NOT NULL,
  target fcap_id,
  event_type text NOT NULL DEFAULT 'impression',
  cap_limit integer,
  window_kind text NOT NULL,
  -- Seconds as in campaigns, to the millisecond.
  window_seconds numeric(11, 3),
  calendar_unit text,
  time_zone text,
  week_start text,
  segment fcap_id,
  starts_at timestamptz(3),
  ends_at timestamptz(3),
  mode text NOT NULL DEFAULT 'enforce',
  enforcement text NOT NULL DEFAULT 'soft',
  enabled boolean NOT NULL DEFAULT true,
  note text,

  -- 'campaign:…' are the ids of the rules made from campaigns.cap_limit.
  CONSTRAINT cap_rules_id_not_reserved CHECK (NOT starts_with(id, 'campaign:')),
  CONSTRAINT cap_rules_scope_known
    CHECK (scope IN ('campaign', 'creative', 'advertiser', 'group', 'user')),
  CONSTRAINT cap_rules_target_fits_scope CHECK ((scope = 'user') = (target IS NULL)),
  CONSTRAINT cap_rules_event_type_known
    CHECK (event_type IN ('impression', 'click', 'viewable', 'conversion')),
  CONSTRAINT cap_rules_cap_limit_range CHECK (cap_limit >= 0),
  CONSTRAINT cap_rules_window_kind_known
    CHECK (window_kind IN ('sliding', 'calendar', 'fixed', 'lifetime')),
  CONSTRAINT cap_rules_length_fits_kind
    CHECK ((window_kind IN ('sliding', 'fixed')) = (window_seconds IS NOT NULL)),
  CONSTRAINT cap_rules_window_range CHECK (window_seconds BETWEEN 0.001 AND 34560000),
  CONSTRAINT cap_rules_unit_fits_kind CHECK ((window_kind = 'calendar') = (calendar_unit IS NOT NULL)),
  CONSTRAINT cap_rules_unit_known CHECK (calendar_unit IN ('hour', 'day', 'week', 'month')),
  CONSTRAINT cap_rules_zone_fits_kind CHECK (time_zone IS NULL OR window_kind = 'calendar'),
  -- A rule may keep its week_start when its unit changes: units other than weeks ignore it.
  CONSTRAINT cap_rules_week_start_fits_kind CHECK (week_start IS NULL OR window_kind = 'calendar'),
  CONSTRAINT cap_rules_week_start_known
    CHECK (week_start IN ('monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday')),
  -- Also keeps infinity out.
  CONSTRAINT cap_rules_starts_at_range CHECK (starts_at >= '1970-01-01Z' AND starts_at < '9999-12-31Z'),
  CONSTRAINT cap_rules_ends_at_range CHECK (ends_at >= '1970-01-01Z' AND ends_at < '9999-12-31Z'),
  CONSTRAINT cap_rules_ends_after_start CHECK (ends_at > starts_at),
  CONSTRAINT cap_rules_mode_known CHECK (mode IN ('enforce', 'shadow')),
  CONSTRAINT cap_rules_enforcement_known CHECK (enforcement IN ('soft', 'hard'))
);

-- A zone that PostgreSQL does not have is most likely one that fcap does not have either. The zones are looked at once
-- per statement, because listing them reads a thousand files.
CREATE FUNCTION fcap_check_time_zones() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  unknown text;
BEGIN
  SELECT n.time_zone INTO unknown
    FROM (SELECT DISTINCT time_zone FROM new_rows WHERE time_zone IS NOT NULL AND time_zone <> 'UTC') n
   WHERE n.time_zone ~ '^(posix|right)/|^(localtime|posixrules|Factory)$'
      OR NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names z WHERE z.name = n.time_zone)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'cap_rules.time_zone: "%" is not an IANA time zone', unknown
      USING ERRCODE = 'check_violation', CONSTRAINT = 'cap_rules_time_zone_known',
            HINT = 'A name such as Europe/Berlin, spelled as in pg_timezone_names.';
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER cap_rules_zones_inserted AFTER INSERT ON cap_rules
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION fcap_check_time_zones();
CREATE TRIGGER cap_rules_zones_updated AFTER UPDATE ON cap_rules
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION fcap_check_time_zones();

-- One row that changes whenever the rules do, in the same transaction: what every fcap process looks at.

CREATE TABLE rule_set_version (
  only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT rule_set_version_one_row CHECK (only_row),
  version bigint NOT NULL CONSTRAINT rule_set_version_range CHECK (version >= 1),
  -- Tells two histories apart that reach the same number, as after a restored backup.
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- A shrink up to this version is meant (fcap_accept_rules()).
  accepted_version bigint
);
INSERT INTO rule_set_version (version) VALUES (1);

-- Who changed what and when; docs/rules-sql.md shows the statements that use it.

CREATE TABLE rule_history (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version bigint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The account that logged in, whatever role it has taken since.
  changed_by text NOT NULL DEFAULT session_user,
  table_name text NOT NULL,
  operation text NOT NULL CONSTRAINT rule_history_operation_known
    CHECK (operation IN ('insert', 'update', 'delete', 'truncate', 'accept')),
  row_key text,
  old_row jsonb,
  new_row jsonb
);
CREATE INDEX rule_history_by_version ON rule_history (version);
CREATE INDEX rule_history_by_row ON rule_history (table_name, row_key, id);

-- Raises the version when rows have really changed, and writes down which. A statement that finds no row, or writes
-- what is there already, makes nobody load the rules again. With its owner's rights, so that whoever may change a rule
-- need not be allowed to change the version.
CREATE FUNCTION fcap_bump_rule_set_version() RETURNS trigger
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

-- On the version rather than on the rules, so that a version raised by hand is announced as well. No
-- payload: however many statements a transaction has, it announces one change.
CREATE FUNCTION fcap_notify_rules() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NOTIFY fcap_rules;
  RETURN NULL;
END
$$;

CREATE TRIGGER rule_set_version_notify AFTER INSERT OR UPDATE ON rule_set_version
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_notify_rules();

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

-- Named sets of users, for rules with a segment. A segment is there as soon as a row of either table names it; its
-- members are those of both.

CREATE TABLE segments (
  id fcap_id PRIMARY KEY,
  -- Users whose ids are canonical decimals below 2^64: a roaring bitmap in the portable 64-bit serialisation.
  bitmap bytea,
  note text
);
-- Bitmaps are compressed already.
ALTER TABLE segments ALTER COLUMN bitmap SET STORAGE EXTERNAL;

-- Not a reference to segments: checking ten million rows one by one takes longer than loading them.
CREATE TABLE segment_members (
  segment_id fcap_id NOT NULL,
  user_id fcap_id NOT NULL,
  PRIMARY KEY (segment_id, user_id)
);

CREATE TABLE segment_set_version (
  only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT segment_set_version_one_row CHECK (only_row),
  version bigint NOT NULL CONSTRAINT segment_set_version_range CHECK (version >= 1),
  -- As in rule_set_version.
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  accepted_version bigint
);
INSERT INTO segment_set_version (version) VALUES (1);

-- With its owner's rights, as fcap_bump_rule_set_version.
CREATE FUNCTION fcap_bump_segment_set_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
                   JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
                   JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
                  WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME AND c.relnamespace = p.pronamespace) THEN
    RAISE EXCEPTION 'fcap_bump_segment_set_version() is for the tables of its own schema, not for %',
        TG_RELID::pg_catalog.regclass USING ERRCODE = 'insufficient_privilege';
  END IF;
  EXECUTE pg_catalog.format(
    'INSERT INTO %I.segment_set_version AS v (version) VALUES (1) ON CONFLICT (only_row)
     DO UPDATE SET version = v.version + 1, changed_at = pg_catalog.clock_timestamp()', TG_TABLE_SCHEMA);
  RETURN NULL;
END
$$;

CREATE FUNCTION fcap_notify_segments() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NOTIFY fcap_segments;
  RETURN NULL;
END
$$;

CREATE TRIGGER segment_set_version_notify AFTER INSERT OR UPDATE ON segment_set_version
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_notify_segments();

CREATE TRIGGER segments_bump_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON segments
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_segment_set_version();
CREATE TRIGGER segment_members_bump_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON segment_members
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_segment_set_version();

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

REVOKE EXECUTE ON FUNCTION fcap_bump_rule_set_version(), fcap_bump_segment_set_version(), fcap_check_time_zones(),
  fcap_notify_rules(), fcap_notify_segments(), fcap_accept_rules(), fcap_accept_segments(), fcap_rules_at(bigint),
  fcap_report_rules(text, bigint, bigint, text, text) FROM PUBLIC;

COMMENT ON TABLE campaigns IS 'fcap: the catalog, with the simple cap of a campaign (sliding window)';
COMMENT ON TABLE campaign_groups IS 'fcap: named sets of campaigns; a campaign may be in any number of them';
COMMENT ON TABLE cap_rules IS 'fcap: rules beyond the simple caps in campaigns';
COMMENT ON TABLE rule_set_version IS 'fcap: grows with every change of the rules; kept by triggers';
COMMENT ON TABLE segments IS 'fcap: named sets of users, with members as a bitmap';
COMMENT ON TABLE segment_members IS 'fcap: members of segments, one per row';
COMMENT ON TABLE segment_set_version IS 'fcap: grows with every change of the segments; kept by triggers';
COMMENT ON TABLE rule_history IS 'fcap: who changed which rule when; written by triggers';
COMMENT ON COLUMN rule_history.version IS 'the rule set version that the change made';
COMMENT ON COLUMN rule_history.changed_by IS 'the account that had logged in';
COMMENT ON COLUMN rule_history.operation IS 'insert, update, delete, truncate, or accept: fcap_accept_rules()';
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
COMMENT ON COLUMN cap_rules.enforcement IS 'soft, or hard: the ad server reserves before it shows the ad';
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
