-- Every rule that is not "this campaign, so many in a sliding window": other scopes, windows, event types…
-- The words are those of docs/semantics.md; every column is described in docs/rules-sql.md.

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
  -- Written so that a NULL unit makes it false, not unknown.
  CONSTRAINT cap_rules_week_start_fits_unit
    CHECK (week_start IS NULL OR coalesce(calendar_unit = 'week', false)),
  CONSTRAINT cap_rules_week_start_known
    CHECK (week_start IN ('monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday')),
  -- Also keeps infinity out.
  CONSTRAINT cap_rules_starts_at_range CHECK (starts_at >= '1970-01-01Z' AND starts_at < '9999-12-31Z'),
  CONSTRAINT cap_rules_ends_at_range CHECK (ends_at >= '1970-01-01Z' AND ends_at < '9999-12-31Z'),
  CONSTRAINT cap_rules_ends_after_start CHECK (ends_at > starts_at),
  CONSTRAINT cap_rules_mode_known CHECK (mode IN ('enforce', 'shadow')),
  CONSTRAINT cap_rules_enforcement_known CHECK (enforcement IN ('soft', 'hard'))
);

COMMENT ON TABLE cap_rules IS 'fcap: rules beyond the simple caps in campaigns';

-- A zone that PostgreSQL does not have is most likely one that fcap does not have either. Looked at once a
-- statement, since listing the zones reads a thousand files.
CREATE FUNCTION fcap_check_time_zones() RETURNS trigger
LANGUAGE plpgsql AS $$
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
