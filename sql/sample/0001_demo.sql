-- Sample data for the demo: 40 campaigns c1 to c40 of five advertisers adv1 to adv5, each at most three times
-- in 24 hours; one advertiser and the user capped as a whole. May be loaded again: it changes nothing.

INSERT INTO campaigns (id, advertiser_id, cap_limit, window_seconds)
SELECT 'c' || n, 'adv' || (n - 1) % 5 + 1, 3, 86400
  FROM generate_series(1, 40) AS n
ON CONFLICT (id) DO NOTHING;

-- Autumn and winter coats must not take turns on one screen.
INSERT INTO campaign_groups (campaign_id, group_id)
VALUES ('c7', 'coats'), ('c8', 'coats'), ('c9', 'coats')
ON CONFLICT DO NOTHING;

INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds, note)
VALUES ('adv1-hourly', 'advertiser', 'adv1', 8, 'sliding', 3600, 'at most 8 an hour of adv1, over all its campaigns'),
       ('user-minute', 'user', NULL, 30, 'sliding', 60, 'nobody sees more than 30 ads a minute')
ON CONFLICT (id) DO NOTHING;

-- Shown once to each user: the demo asks until it is capped, and so measures the propagation delay.
INSERT INTO campaigns (id, advertiser_id, cap_limit, window_seconds)
VALUES ('demo-probe', NULL, 1, 3600)
ON CONFLICT (id) DO NOTHING;
