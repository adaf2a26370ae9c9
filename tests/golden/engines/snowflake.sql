-- the catalog
ALTER SESSION SET TIMEZONE = 'UTC';
SELECT "id", "name", "chain" FROM "o" LIMIT 200;
SELECT "id", "name", "city", "price", "stars", "owner", "opened", "body" FROM "r" LIMIT 200;
SELECT 1 FROM "r" WHERE "id" IS NULL LIMIT 1;
SELECT 1 FROM "r" GROUP BY "id" HAVING COUNT(*) > 1 LIMIT 1;
SELECT 1 FROM "o" WHERE "id" IS NULL LIMIT 1;
SELECT 1 FROM "o" GROUP BY "id" HAVING COUNT(*) > 1 LIMIT 1;

-- sorted: SELECT id, name FROM r WHERE city = 'Oslo' AND answer(r.body, 'is it calm?') = 'Yes' ORDER BY stars DESC, id LIMIT 2
ALTER SESSION SET TIMEZONE = 'UTC';
SELECT "r"."id" AS "_row", "r"."body" AS "d0", "r"."id" AS "k1" FROM "r" AS "r" WHERE "r"."city" = 'Oslo' ORDER BY "r"."stars" DESC NULLS LAST, "r"."id", "r"."id";
CREATE TEMPORARY TABLE "t__block_2_kept" ("_row" BIGINT);
INSERT INTO "t__block_2_kept" VALUES (12), (24);
SELECT "_block_2"."c0" AS "c0", "_block_2"."c1" AS "c1", "_block_2"."_row" AS "e0" FROM (SELECT "r"."id" AS "c0", "r"."name" AS "c1", "r"."id" AS "_row", ROW_NUMBER() OVER (ORDER BY "r"."stars" DESC NULLS LAST, "r"."id") AS "_ord" FROM "r" AS "r" JOIN "t__block_2_kept" AS "_block_2_kept" ON "_block_2_kept"."_row" = "r"."id" ORDER BY "r"."stars" DESC NULLS LAST, "r"."id" LIMIT 2) AS "_block_2" ORDER BY "_block_2"."_ord";
DROP TABLE "t__block_2_kept";

-- grouped: SELECT city, count(*), sum((id + 1) / (stars + 1)) FROM r WHERE NOT (answer(r.body, 'is it calm?') = 'Yes' OR stars > 4) GROUP BY city ORDER BY 2 DESC, 1
ALTER SESSION SET TIMEZONE = 'UTC';
SELECT "r"."id" AS "_row", "r"."body" AS "d0", "r"."id" AS "k1", "r"."stars" > 4 AS "s0" FROM "r" AS "r" WHERE NOT "r"."stars" > 4;
CREATE TEMPORARY TABLE "t__block_4_kept" ("_row" BIGINT);
INSERT INTO "t__block_4_kept" VALUES (1), (2), (4), (7), (8), (10), (13), (14), (16), (19), (20), (25), (26), (28), (31), (32), (34), (37), (38), (40);
SELECT "_rows_2"."r.city" AS "c0", COUNT(*) AS "c1", SUM(CAST((("_rows_2"."r.id" + 1) - ("_rows_2"."r.id" + 1) % ("_rows_2"."r.stars" + 1)) / ("_rows_2"."r.stars" + 1) AS BIGINT)) AS "c2", ARRAY_AGG("_rows_2"."_row") AS "e0" FROM (SELECT "_block_4"."c0" AS "r.city", "_block_4"."c1" AS "r.id", "_block_4"."c2" AS "r.stars", "_block_4"."_row" AS "_row" FROM (SELECT "r"."city" AS "c0", "r"."id" AS "c1", "r"."stars" AS "c2", "r"."id" AS "_row" FROM "r" AS "r" JOIN "t__block_4_kept" AS "_block_4_kept" ON "_block_4_kept"."_row" = "r"."id") AS "_block_4") AS "_rows_2" GROUP BY "_rows_2"."r.city" ORDER BY COUNT(*) DESC NULLS LAST, "_rows_2"."r.city";
DROP TABLE "t__block_4_kept";

-- joined: SELECT r.id, o.name FROM r JOIN o ON o.id = r.owner WHERE o.chain IS NOT TRUE AND r.name ~ '^N.[0-5]$' AND r.name LIKE 'N%' AND answer(r.body, 'is it calm?') = 'Yes' ORDER BY r.opened, r.id LIMIT 3
ALTER SESSION SET TIMEZONE = 'UTC';
CREATE TEMPORARY TABLE "t__block_2_rows" AS SELECT ROW_NUMBER() OVER (ORDER BY 1 NULLS FIRST) AS "_row", "r"."id" AS "r.id", "o"."name" AS "o.name", "r"."name" AS "r.name", "r"."body" AS "r.body", "o"."chain" AS "o.chain", "r"."opened" AS "r.opened" FROM "r" AS "r" JOIN "o" AS "o" ON "o"."id" = "r"."owner" WHERE NOT COALESCE("o"."chain", FALSE) AND REGEXP_INSTR("r"."name", '^N.[0-5]$', 1, 1, 0, 's') > 0 AND "r"."name" LIKE 'N%';
SELECT COUNT(*) FROM "t__block_2_rows";
SELECT "_block_2_rows"."_row" AS "_row", "_block_2_rows"."r.body" AS "d0", "_block_2_rows"."r.id" AS "k1" FROM "t__block_2_rows" AS "_block_2_rows" ORDER BY "_block_2_rows"."r.opened", "_block_2_rows"."r.id", "_block_2_rows"."_row";
CREATE TEMPORARY TABLE "t__block_2_kept" ("_row" BIGINT);
INSERT INTO "t__block_2_kept" VALUES (3), (14), (9);
SELECT "_block_2"."c0" AS "c0", "_block_2"."c1" AS "c1", "_block_2"."_row" AS "e0" FROM (SELECT "_block_2_rows"."r.id" AS "c0", "_block_2_rows"."o.name" AS "c1", "_block_2_rows"."_row" AS "_row", ROW_NUMBER() OVER (ORDER BY "_block_2_rows"."r.opened", "_block_2_rows"."r.id") AS "_ord" FROM "t__block_2_rows" AS "_block_2_rows" JOIN "t__block_2_kept" AS "_block_2_kept" ON "_block_2_kept"."_row" = "_block_2_rows"."_row" ORDER BY "_block_2_rows"."r.opened", "_block_2_rows"."r.id" LIMIT 3) AS "_block_2" ORDER BY "_block_2"."_ord";
DROP TABLE "t__block_2_rows";
DROP TABLE "t__block_2_kept";

-- computed: SELECT max(answer(body, 'which number?')::int) FROM r WHERE stars > 2 AND price = 'dear'
ALTER SESSION SET TIMEZONE = 'UTC';
SELECT "r"."id" AS "_row", "r"."body" AS "d0", "r"."id" AS "k1" FROM "r" AS "r" WHERE "r"."stars" > 2 AND 'dear' = CAST("r"."price" AS VARCHAR);
CREATE TEMPORARY TABLE "t__block_4_text" ("_row" BIGINT, "t0" VARCHAR);
INSERT INTO "t__block_4_text" VALUES (3, '3'), (5, '5'), (11, NULL), (15, '15'), (17, '17'), (21, '21'), (23, '23'), (29, '29'), (33, NULL), (35, '35'), (39, '39');
SELECT MAX("_rows_2"."u0") AS "c0", ARRAY_AGG("_rows_2"."_row") AS "e0" FROM (SELECT "_block_4"."c0" AS "u0", "_block_4"."_row" AS "_row" FROM (SELECT CAST("_block_4_text"."t0" AS INT) AS "c0", "r"."id" AS "_row" FROM "r" AS "r" JOIN "t__block_4_text" AS "_block_4_text" ON "_block_4_text"."_row" = "r"."id" WHERE "r"."stars" > 2 AND 'dear' = CAST("r"."price" AS VARCHAR)) AS "_block_4") AS "_rows_2";
DROP TABLE "t__block_4_text";

-- projected: SELECT id, answer(body, 'which number?') FROM r WHERE city IS NULL ORDER BY id DESC LIMIT 2
ALTER SESSION SET TIMEZONE = 'UTC';
CREATE TEMPORARY TABLE "t__block_2_page" AS SELECT ROW_NUMBER() OVER (ORDER BY "r"."id" DESC NULLS LAST) AS "_ord", "r"."id" AS "_row", "r"."id" AS "r.id", "r"."body" AS "r.body" FROM "r" AS "r" WHERE "r"."city" IS NULL ORDER BY "_ord" LIMIT 2;
SELECT COUNT(*) FROM "t__block_2_page";
SELECT "_block_2_page"."_row" AS "_row", "_block_2_page"."r.body" AS "d0", "_block_2_page"."r.id" AS "k1" FROM "t__block_2_page" AS "_block_2_page";
CREATE TEMPORARY TABLE "t__block_2_text" ("_row" BIGINT, "t0" VARCHAR);
INSERT INTO "t__block_2_text" VALUES (38, '38'), (34, '34');
SELECT "_block_2"."c0" AS "c0", "_block_2"."c1" AS "c1", "_block_2"."_row" AS "e0" FROM (SELECT "_block_2_page"."r.id" AS "c0", "_block_2_text"."t0" AS "c1", "_block_2_page"."_row" AS "_row", ROW_NUMBER() OVER (ORDER BY "_block_2_page"."_ord") AS "_ord" FROM "t__block_2_page" AS "_block_2_page" JOIN "t__block_2_text" AS "_block_2_text" ON "_block_2_text"."_row" = "_block_2_page"."_row" ORDER BY "_block_2_page"."_ord") AS "_block_2" ORDER BY "_block_2"."_ord";
DROP TABLE "t__block_2_page";
DROP TABLE "t__block_2_text";
