-- the catalog
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
SELECT table_name, column_name, column_comment, column_type FROM information_schema.columns WHERE table_schema = DATABASE();
SELECT table_name, column_name FROM information_schema.key_column_usage WHERE constraint_name = 'PRIMARY' AND table_schema = DATABASE() ORDER BY table_name, ordinal_position;
SELECT table_name, CASE WHEN table_type = 'BASE TABLE' THEN table_comment ELSE '' END, table_rows FROM information_schema.tables WHERE table_schema = DATABASE();
SELECT `id`, `name`, `chain` FROM `o` LIMIT 200;
SELECT `id`, `name`, `city`, `price`, `stars`, `owner`, `opened`, `body` FROM `r` LIMIT 200;
SELECT 1 FROM `r` WHERE `id` IS NULL LIMIT 1;
SELECT 1 FROM `r` GROUP BY `id` HAVING COUNT(*) > 1 LIMIT 1;
SELECT 1 FROM `o` WHERE `id` IS NULL LIMIT 1;
SELECT 1 FROM `o` GROUP BY `id` HAVING COUNT(*) > 1 LIMIT 1;
ROLLBACK;

-- sorted: SELECT id, name FROM r WHERE city = 'Oslo' AND answer(r.body, 'is it calm?') = 'Yes' ORDER BY stars DESC, id LIMIT 2
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
CREATE TEMPORARY TABLE `t_stream1` AS SELECT `r`.`id` AS `_row`, (CAST(`r`.`body` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `d0`, `r`.`id` AS `k1`, ROW_NUMBER() OVER (ORDER BY `r`.`stars` DESC, CASE WHEN `r`.`id` IS NULL THEN 1 ELSE 0 END, `r`.`id`, CASE WHEN `r`.`id` IS NULL THEN 1 ELSE 0 END, `r`.`id`) AS `_n` FROM `r` AS `r` WHERE (CAST(`r`.`city` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) = 'Oslo';
SELECT * FROM `t_stream1` WHERE `_n` > 0 AND `_n` <= 32 ORDER BY `_n`;
DROP TEMPORARY TABLE `t_stream1`;
CREATE TEMPORARY TABLE `t__block_2_kept` (`_row` BIGINT);
INSERT INTO `t__block_2_kept` VALUES (12), (24);
SELECT `_block_2`.`c0` AS `c0`, `_block_2`.`c1` AS `c1`, `_block_2`.`_row` AS `e0` FROM (SELECT `r`.`id` AS `c0`, (CAST(`r`.`name` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `c1`, `r`.`id` AS `_row`, ROW_NUMBER() OVER (ORDER BY `r`.`stars` DESC, CASE WHEN `r`.`id` IS NULL THEN 1 ELSE 0 END, `r`.`id`) AS `_ord` FROM `r` AS `r` JOIN `t__block_2_kept` AS `_block_2_kept` ON `_block_2_kept`.`_row` = `r`.`id` ORDER BY `r`.`stars` DESC, CASE WHEN `r`.`id` IS NULL THEN 1 ELSE 0 END, `r`.`id` LIMIT 2) AS `_block_2` ORDER BY `_block_2`.`_ord`;
DROP TEMPORARY TABLE `t__block_2_kept`;
ROLLBACK;

-- grouped: SELECT city, count(*), sum((id + 1) / (stars + 1)) FROM r WHERE NOT (answer(r.body, 'is it calm?') = 'Yes' OR stars > 4) GROUP BY city ORDER BY 2 DESC, 1
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
CREATE TEMPORARY TABLE `t_stream1` AS SELECT `r`.`id` AS `_row`, (CAST(`r`.`body` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `d0`, `r`.`id` AS `k1`, `r`.`stars` > 4 AS `s0`, ROW_NUMBER() OVER () AS `_n` FROM `r` AS `r` WHERE NOT `r`.`stars` > 4;
SELECT * FROM `t_stream1` WHERE `_n` > 0 AND `_n` <= 32 ORDER BY `_n`;
SELECT * FROM `t_stream1` WHERE `_n` > 32 AND `_n` <= 96 ORDER BY `_n`;
DROP TEMPORARY TABLE `t_stream1`;
CREATE TEMPORARY TABLE `t__block_4_kept` (`_row` BIGINT);
INSERT INTO `t__block_4_kept` VALUES (1), (2), (4), (7), (8), (10), (13), (14), (16), (19), (20), (25), (26), (28), (31), (32), (34), (37), (38), (40);
SELECT `_rows_2`.`r.city` AS `c0`, COUNT(*) AS `c1`, SUM(CAST(((`_rows_2`.`r.id` + 1) - (`_rows_2`.`r.id` + 1) % (`_rows_2`.`r.stars` + 1)) / (`_rows_2`.`r.stars` + 1) AS SIGNED)) AS `c2`, JSON_ARRAYAGG(`_rows_2`.`_row`) AS `e0` FROM (SELECT `_block_4`.`c0` AS `r.city`, `_block_4`.`c1` AS `r.id`, `_block_4`.`c2` AS `r.stars`, `_block_4`.`_row` AS `_row` FROM (SELECT (CAST(`r`.`city` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `c0`, `r`.`id` AS `c1`, `r`.`stars` AS `c2`, `r`.`id` AS `_row` FROM `r` AS `r` JOIN `t__block_4_kept` AS `_block_4_kept` ON `_block_4_kept`.`_row` = `r`.`id`) AS `_block_4`) AS `_rows_2` GROUP BY `_rows_2`.`r.city` ORDER BY COUNT(*) DESC, CASE WHEN `_rows_2`.`r.city` IS NULL THEN 1 ELSE 0 END, `_rows_2`.`r.city`;
DROP TEMPORARY TABLE `t__block_4_kept`;
ROLLBACK;

-- joined: SELECT r.id, o.name FROM r JOIN o ON o.id = r.owner WHERE o.chain IS NOT TRUE AND r.name ~ '^N.[0-5]$' AND r.name LIKE 'N%' AND answer(r.body, 'is it calm?') = 'Yes' ORDER BY r.opened, r.id LIMIT 3
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
CREATE TEMPORARY TABLE `t__block_2_rows` AS SELECT ROW_NUMBER() OVER () AS `_row`, `r`.`id` AS `r.id`, (CAST(`o`.`name` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `o.name`, (CAST(`r`.`name` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `r.name`, (CAST(`r`.`body` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `r.body`, `o`.`chain` AS `o.chain`, `r`.`opened` AS `r.opened` FROM `r` AS `r` JOIN `o` AS `o` ON `o`.`id` = `r`.`owner` WHERE NOT `o`.`chain` IS TRUE AND REGEXP_INSTR((CAST(`r`.`name` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin), '(?s)^N.[0-5]$') > 0 AND (CAST(`r`.`name` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) LIKE 'N%';
SELECT COUNT(*) FROM `t__block_2_rows`;
CREATE TEMPORARY TABLE `t_stream1` AS SELECT `_block_2_rows`.`_row` AS `_row`, `_block_2_rows`.`r.body` AS `d0`, `_block_2_rows`.`r.id` AS `k1`, ROW_NUMBER() OVER (ORDER BY CASE WHEN `_block_2_rows`.`r.opened` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`r.opened`, CASE WHEN `_block_2_rows`.`r.id` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`r.id`, CASE WHEN `_block_2_rows`.`_row` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`_row`) AS `_n` FROM `t__block_2_rows` AS `_block_2_rows`;
SELECT * FROM `t_stream1` WHERE `_n` > 0 AND `_n` <= 32 ORDER BY `_n`;
DROP TEMPORARY TABLE `t_stream1`;
CREATE TEMPORARY TABLE `t__block_2_kept` (`_row` BIGINT);
INSERT INTO `t__block_2_kept` VALUES (3), (14), (9);
SELECT `_block_2`.`c0` AS `c0`, `_block_2`.`c1` AS `c1`, `_block_2`.`_row` AS `e0` FROM (SELECT `_block_2_rows`.`r.id` AS `c0`, `_block_2_rows`.`o.name` AS `c1`, `_block_2_rows`.`_row` AS `_row`, ROW_NUMBER() OVER (ORDER BY CASE WHEN `_block_2_rows`.`r.opened` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`r.opened`, CASE WHEN `_block_2_rows`.`r.id` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`r.id`) AS `_ord` FROM `t__block_2_rows` AS `_block_2_rows` JOIN `t__block_2_kept` AS `_block_2_kept` ON `_block_2_kept`.`_row` = `_block_2_rows`.`_row` ORDER BY CASE WHEN `_block_2_rows`.`r.opened` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`r.opened`, CASE WHEN `_block_2_rows`.`r.id` IS NULL THEN 1 ELSE 0 END, `_block_2_rows`.`r.id` LIMIT 3) AS `_block_2` ORDER BY `_block_2`.`_ord`;
DROP TEMPORARY TABLE `t__block_2_rows`;
DROP TEMPORARY TABLE `t__block_2_kept`;
ROLLBACK;

-- computed: SELECT max(answer(body, 'which number?')::int) FROM r WHERE stars > 2 AND price = 'dear'
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
CREATE TEMPORARY TABLE `t_stream1` AS SELECT `r`.`id` AS `_row`, (CAST(`r`.`body` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `d0`, `r`.`id` AS `k1`, ROW_NUMBER() OVER () AS `_n` FROM `r` AS `r` WHERE `r`.`stars` > 2 AND 'dear' = CAST((CAST(`r`.`price` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS CHAR);
SELECT * FROM `t_stream1` WHERE `_n` > 0 AND `_n` <= 32 ORDER BY `_n`;
SELECT * FROM `t_stream1` WHERE `_n` > 32 AND `_n` <= 96 ORDER BY `_n`;
DROP TEMPORARY TABLE `t_stream1`;
CREATE TEMPORARY TABLE `t__block_4_text` (`_row` BIGINT, `t0` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin);
INSERT INTO `t__block_4_text` VALUES (3, '3'), (5, '5'), (11, NULL), (15, '15'), (17, '17'), (21, '21'), (23, '23'), (29, '29'), (33, NULL), (35, '35'), (39, '39');
SELECT MAX(`_rows_2`.`u0`) AS `c0`, JSON_ARRAYAGG(`_rows_2`.`_row`) AS `e0` FROM (SELECT `_block_4`.`c0` AS `u0`, `_block_4`.`_row` AS `_row` FROM (SELECT CAST(`_block_4_text`.`t0` AS SIGNED) AS `c0`, `r`.`id` AS `_row` FROM `r` AS `r` JOIN `t__block_4_text` AS `_block_4_text` ON `_block_4_text`.`_row` = `r`.`id` WHERE `r`.`stars` > 2 AND 'dear' = CAST((CAST(`r`.`price` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS CHAR)) AS `_block_4`) AS `_rows_2`;
DROP TEMPORARY TABLE `t__block_4_text`;
ROLLBACK;

-- projected: SELECT id, answer(body, 'which number?') FROM r WHERE city IS NULL ORDER BY id DESC LIMIT 2
SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin;
SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO';
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
CREATE TEMPORARY TABLE `t__block_2_page` AS SELECT ROW_NUMBER() OVER (ORDER BY `r`.`id` DESC) AS `_ord`, `r`.`id` AS `_row`, `r`.`id` AS `r.id`, (CAST(`r`.`body` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) AS `r.body` FROM `r` AS `r` WHERE (CAST(`r`.`city` AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_0900_bin) IS NULL ORDER BY `_ord` LIMIT 2;
SELECT COUNT(*) FROM `t__block_2_page`;
CREATE TEMPORARY TABLE `t_stream1` AS SELECT `_block_2_page`.`_row` AS `_row`, `_block_2_page`.`r.body` AS `d0`, `_block_2_page`.`r.id` AS `k1`, ROW_NUMBER() OVER () AS `_n` FROM `t__block_2_page` AS `_block_2_page`;
SELECT * FROM `t_stream1` WHERE `_n` > 0 AND `_n` <= 32 ORDER BY `_n`;
SELECT * FROM `t_stream1` WHERE `_n` > 32 AND `_n` <= 96 ORDER BY `_n`;
DROP TEMPORARY TABLE `t_stream1`;
CREATE TEMPORARY TABLE `t__block_2_text` (`_row` BIGINT, `t0` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin);
INSERT INTO `t__block_2_text` VALUES (38, '38'), (34, '34');
SELECT `_block_2`.`c0` AS `c0`, `_block_2`.`c1` AS `c1`, `_block_2`.`_row` AS `e0` FROM (SELECT `_block_2_page`.`r.id` AS `c0`, `_block_2_text`.`t0` AS `c1`, `_block_2_page`.`_row` AS `_row`, ROW_NUMBER() OVER (ORDER BY CASE WHEN `_block_2_page`.`_ord` IS NULL THEN 1 ELSE 0 END, `_block_2_page`.`_ord`) AS `_ord` FROM `t__block_2_page` AS `_block_2_page` JOIN `t__block_2_text` AS `_block_2_text` ON `_block_2_text`.`_row` = `_block_2_page`.`_row` ORDER BY CASE WHEN `_block_2_page`.`_ord` IS NULL THEN 1 ELSE 0 END, `_block_2_page`.`_ord`) AS `_block_2` ORDER BY `_block_2`.`_ord`;
DROP TEMPORARY TABLE `t__block_2_page`;
DROP TEMPORARY TABLE `t__block_2_text`;
ROLLBACK;
