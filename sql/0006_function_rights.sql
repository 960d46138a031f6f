-- The triggers' functions do nothing for anybody but the triggers of this schema. Two of them run with their owner's
-- rights: whoever could attach them to a table of his own had them write to a rule_set_version of his own, whose
-- triggers then ran with those rights too.
--
-- EXECUTE on a trigger function is asked for when a trigger is made, not when it fires: these triggers go on.

CREATE OR REPLACE FUNCTION fcap_bump_rule_set_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
                   JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
                   JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
                  WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME AND c.relnamespace = p.pronamespace) THEN
    RAISE EXCEPTION 'fcap_bump_rule_set_version() is for the tables of its own schema, not for %',
        TG_RELID::pg_catalog.regclass USING ERRCODE = 'insufficient_privilege';
  END IF;
  EXECUTE pg_catalog.format(
    'INSERT INTO %I.rule_set_version AS v (version) VALUES (1) ON CONFLICT (only_row)
     DO UPDATE SET version = v.version + 1, changed_at = pg_catalog.clock_timestamp()', TG_TABLE_SCHEMA);
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION fcap_bump_segment_set_version() RETURNS trigger
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

ALTER FUNCTION fcap_check_time_zones() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION fcap_notify_rules() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION fcap_notify_segments() SET search_path = pg_catalog, pg_temp;

REVOKE EXECUTE ON FUNCTION fcap_bump_rule_set_version(), fcap_bump_segment_set_version(), fcap_check_time_zones(),
  fcap_notify_rules(), fcap_notify_segments() FROM PUBLIC;
