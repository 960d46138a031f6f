-- The catalog: which campaigns there are, whose they are, and the simple way to cap one.
-- Every column is described in docs/rules-sql.md.

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

COMMENT ON TABLE campaigns IS 'fcap: the catalog, with the simple cap of a campaign (sliding window)';
COMMENT ON TABLE campaign_groups IS 'fcap: named sets of campaigns; a campaign may be in any number of them';
