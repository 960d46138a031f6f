-- Named sets of users, for rules with a segment. A segment is there as soon as a row of either table names it; its
-- members are those of both. Every column is described in docs/segments.md.

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
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO segment_set_version (version) VALUES (1);

COMMENT ON TABLE segments IS 'fcap: named sets of users, with members as a bitmap';
COMMENT ON TABLE segment_members IS 'fcap: members of segments, one a row';
COMMENT ON TABLE segment_set_version IS 'fcap: grows with every change of the segments; kept by triggers';

-- With its owner's rights, as fcap_bump_rule_set_version.
CREATE FUNCTION fcap_bump_segment_set_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('INSERT INTO %I.segment_set_version AS v (version) VALUES (1) ON CONFLICT (only_row)
                  DO UPDATE SET version = v.version + 1, changed_at = clock_timestamp()', TG_TABLE_SCHEMA);
  RETURN NULL;
END
$$;

CREATE FUNCTION fcap_notify_segments() RETURNS trigger
LANGUAGE plpgsql AS $$
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
