-- One row that changes whenever the rules do, in the same transaction: what every fcap process looks at.

CREATE TABLE rule_set_version (
  only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT rule_set_version_one_row CHECK (only_row),
  version bigint NOT NULL CONSTRAINT rule_set_version_range CHECK (version >= 1),
  -- Tells two histories apart that reach the same number, as after a restored backup.
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO rule_set_version (version) VALUES (1);

COMMENT ON TABLE rule_set_version IS 'fcap: grows with every change of the rules; kept by triggers';

-- With its owner's rights, so that whoever may change a rule need not be allowed to change the version.
CREATE FUNCTION fcap_bump_rule_set_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('INSERT INTO %I.rule_set_version AS v (version) VALUES (1) ON CONFLICT (only_row)
                  DO UPDATE SET version = v.version + 1, changed_at = clock_timestamp()', TG_TABLE_SCHEMA);
  RETURN NULL;
END
$$;

-- On the version rather than on the rules, so that a version raised by hand is announced as well. No
-- payload: however many statements a transaction has, it announces one change.
CREATE FUNCTION fcap_notify_rules() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NOTIFY fcap_rules;
  RETURN NULL;
END
$$;

CREATE TRIGGER rule_set_version_notify AFTER INSERT OR UPDATE ON rule_set_version
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_notify_rules();

CREATE TRIGGER campaigns_bump_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON campaigns
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER campaign_groups_bump_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON campaign_groups
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
CREATE TRIGGER cap_rules_bump_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON cap_rules
  FOR EACH STATEMENT EXECUTE FUNCTION fcap_bump_rule_set_version();
