-- 10 million reviews made in the server: skewed cities, NULLs, 5 % of texts said more than once, 9.2 million distinct.
-- psql -v rows=10000000 -f make_rows.sql URL
SELECT setseed(0.42);
CREATE TABLE owners AS
SELECT o AS id, 'owner ' || o AS name, (o % 7 = 0) AS chain FROM generate_series(1, 20000) AS o;
ALTER TABLE owners ADD PRIMARY KEY (id);
CREATE TABLE reviews AS
SELECT id,
       1 + floor(20000 * power(random(), 2))::int AS owner,
       'city ' || floor(200 * power(random(), 3))::int AS city,
       CASE WHEN random() < 0.9 THEN 1 + floor(5 * random())::int END AS stars,
       CASE WHEN random() < 0.8 THEN round((5 + 95 * random())::numeric, 2) END AS price,
       date '2015-01-01' + floor(3600 * random())::int AS visited,
       CASE WHEN random() < 0.03 THEN NULL
            WHEN random() < 0.05 THEN 'We came back; calm=' || (ARRAY['Yes', 'No'])[1 + id % 2] || '; as said before '
                                      || floor(1000 * random())::int
            ELSE 'Visit ' || id || ': ' || md5(id::text) || ' ' || md5((id * 7)::text)
                 || ' and the evening went on; calm=' || (ARRAY['Yes', 'No', 'No', 'No'])[1 + id % 4] END AS body
FROM generate_series(1, :rows) AS id;
ALTER TABLE reviews ADD PRIMARY KEY (id);
COMMENT ON COLUMN reviews.body IS 'FREE_TEXT what a guest wrote';
VACUUM ANALYZE;
