-- Three groups and their rights; accounts that log in become members of one. docs/rules-sql.md, "Roles".
--
--   fcap_owner    owns the tables and functions; migrations run as this role. No superuser.
--   fcap_reader   reads rules and segments, and reports which version it runs: ad servers, fcap-updater, the command.
--   fcap_planner  edits rules and segments, accepts a shrink, and reads who changed what.
--
-- Run by an administrator (who may create roles), in the schema where the tables are or will be: before the first
-- migration, so that there is an owner, and after each migration, so that new tables have their rights. It can be run
-- any number of times, and hands over tables and functions that another role owns.

DO $$
DECLARE
  schema_name text := pg_catalog.current_schema();
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['fcap_owner', 'fcap_reader', 'fcap_planner'] LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) THEN
      EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', name);
    END IF;
    EXECUTE pg_catalog.format('GRANT USAGE ON SCHEMA %I TO %I', schema_name, name);
  END LOOP;
  EXECUTE pg_catalog.format('GRANT CREATE ON SCHEMA %I TO fcap_owner', schema_name);
  IF NOT pg_catalog.pg_has_role('fcap_planner', 'fcap_reader', 'USAGE') THEN
    GRANT fcap_reader TO fcap_planner;
  END IF;

  FOREACH name IN ARRAY ARRAY['campaigns', 'campaign_groups', 'cap_rules', 'rule_set_version', 'segments',
                              'segment_members', 'segment_set_version', 'rule_set_status', 'rule_history',
                              'fcap_schema_migrations'] LOOP
    CONTINUE WHEN pg_catalog.to_regclass(pg_catalog.format('%I.%I', schema_name, name)) IS NULL;
    EXECUTE pg_catalog.format('ALTER TABLE %I.%I OWNER TO fcap_owner', schema_name, name);
    -- Who changed what is for those who edit, not for every ad server.
    EXECUTE pg_catalog.format('GRANT SELECT ON %I.%I TO %I', schema_name, name,
                              CASE name WHEN 'rule_history' THEN 'fcap_planner' ELSE 'fcap_reader' END);
    CONTINUE WHEN name IN ('rule_set_version', 'segment_set_version', 'rule_set_status', 'rule_history',
                           'fcap_schema_migrations');
    EXECUTE pg_catalog.format('GRANT INSERT, UPDATE, DELETE ON %I.%I TO fcap_planner', schema_name, name);
  END LOOP;

  FOREACH name IN ARRAY ARRAY['fcap_bump_rule_set_version()', 'fcap_bump_segment_set_version()',
                              'fcap_check_time_zones()', 'fcap_notify_rules()', 'fcap_notify_segments()',
                              'fcap_accept_rules()', 'fcap_accept_segments()', 'fcap_rules_at(bigint)',
                              'fcap_report_rules(text, bigint, bigint, text, text)'] LOOP
    CONTINUE WHEN pg_catalog.to_regprocedure(pg_catalog.format('%I.%s', schema_name, name)) IS NULL;
    EXECUTE pg_catalog.format('ALTER FUNCTION %I.%s OWNER TO fcap_owner', schema_name, name);
    -- Triggers need no right to their functions.
    IF name LIKE 'fcap_report%' THEN
      EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %I.%s TO fcap_reader', schema_name, name);
    ELSIF name LIKE 'fcap_accept%' OR name LIKE 'fcap_rules_at%' THEN
      EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %I.%s TO fcap_planner', schema_name, name);
    END IF;
  END LOOP;
  IF pg_catalog.to_regtype(pg_catalog.format('%I.fcap_id', schema_name)) IS NOT NULL THEN
    EXECUTE pg_catalog.format('ALTER DOMAIN %I.fcap_id OWNER TO fcap_owner', schema_name);
  END IF;
END
$$;
