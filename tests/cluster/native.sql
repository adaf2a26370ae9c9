-- Statements in Spark's own SQL, one a line: first those without a text function, then those with one.
SELECT id, name FROM people WHERE age BETWEEN 30 AND 45 ORDER BY id
SELECT dept, count(*), avg(salary), max(age) FROM people GROUP BY dept ORDER BY dept
SELECT dept, count(*) AS n FROM people GROUP BY ALL HAVING n > 1 ORDER BY n DESC, dept
SELECT name, tag FROM people LATERAL VIEW explode(tags) t AS tag ORDER BY name, tag
SELECT name, tag FROM people LATERAL VIEW OUTER explode(tags) t AS tag ORDER BY name, tag
SELECT id, pos, tag FROM people LATERAL VIEW posexplode(tags) AS pos, tag ORDER BY id, pos
SELECT id, key, value FROM people LATERAL VIEW explode(scores) AS key, value ORDER BY id, key
SELECT id, explode(tags) AS tag FROM people ORDER BY id, tag
SELECT id, size(tags), array_contains(tags, 'go'), element_at(tags, 1) FROM people WHERE size(tags) > 0 ORDER BY id
SELECT named_struct('a', id, 'b', name) AS s FROM people ORDER BY id
SELECT struct(id, name).name AS n, address.city, address.zip FROM people ORDER BY id
SELECT id, transform(tags, t -> upper(t)) AS u FROM people ORDER BY id
SELECT id, filter(tags, t -> t LIKE 'g%') AS g FROM people ORDER BY id
SELECT id, aggregate(map_values(scores), 0, (a, b) -> a + b) AS total FROM people ORDER BY id
SELECT id, exists(tags, t -> t = 'sql'), forall(tags, t -> length(t) > 1) FROM people ORDER BY id
SELECT id, zip_with(tags, tags, (a, b) -> concat(a, '-', b)) AS z FROM people ORDER BY id
SELECT id, transform(sequence(1, 3), (x, i) -> x * i) AS s FROM people ORDER BY id LIMIT 2
SELECT percentile(salary, 0.5), percentile_approx(age, array(0.25, 0.75)), median(age) FROM people
SELECT dept, percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) AS m FROM people GROUP BY dept ORDER BY dept
SELECT dept, sort_array(collect_list(name)) AS names, array_sort(collect_set(age)) FROM people GROUP BY dept ORDER BY 1
SELECT dept, max_by(name, salary), min_by(name, salary) FROM people GROUP BY dept ORDER BY dept
SELECT count(DISTINCT dept, age), count_if(age > 30), bool_or(age > 60), approx_count_distinct(dept) FROM people
SELECT dept, sum(salary) FILTER (WHERE age > 30) AS older FROM people GROUP BY dept ORDER BY dept NULLS LAST
SELECT dept, name, rank() OVER (PARTITION BY dept ORDER BY salary DESC) AS r FROM people ORDER BY dept, r, name
SELECT id, lag(amount, 1, 0) OVER w AS before, sum(amount) OVER w AS running FROM sales WINDOW w AS (PARTITION BY person ORDER BY day, id) ORDER BY id
SELECT id, avg(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m FROM sales ORDER BY id
SELECT id, ntile(2) OVER (ORDER BY id), first_value(name) OVER (ORDER BY id) FROM people ORDER BY id
SELECT * FROM (SELECT dept, product, amount FROM sales JOIN people ON people.id = person) PIVOT (sum(amount) AS s FOR product IN ('pen', 'ink')) ORDER BY dept
SELECT * FROM (SELECT id, age, CAST(salary AS INT) AS pay FROM people) UNPIVOT (v FOR k IN (age, pay)) ORDER BY id, k
SELECT dept, age, count(*) AS n FROM people GROUP BY GROUPING SETS ((dept), (age), ()) ORDER BY dept, age, n
SELECT dept, grouping(dept) AS g, sum(age) FROM people GROUP BY ROLLUP (dept) ORDER BY g, dept
SELECT dept, age, count(*) FROM people GROUP BY CUBE (dept, age) ORDER BY 1, 2, 3
SELECT str_to_map('a:1,b:2', ',', ':') AS m, str_to_map('x=1;y=2', ';', '=')['y'] AS y
SELECT id, from_json(j, 'a INT, b STRING').a AS a, get_json_object(j, '$.b') AS b FROM people ORDER BY id
SELECT id, from_json(j, 'a INT, b STRING') AS s, to_json(address) AS t FROM people ORDER BY id
SELECT to_date('2020-02-29'), date_add(DATE '2020-02-28', 2), datediff('2020-03-01', '2020-02-01'), last_day('2020-02-10')
SELECT date_format(hired, 'yyyy/MM'), year(hired), quarter(hired), dayofweek(hired), trunc(hired, 'MM') FROM people ORDER BY id
SELECT date_trunc('HOUR', at), hour(at), unix_timestamp(at), at + INTERVAL 1 DAY FROM sales ORDER BY id
SELECT add_months(hired, 1), months_between(DATE '2024-01-01', hired), next_day(hired, 'MON') FROM people ORDER BY id
SELECT make_date(2020, 1, 2), to_timestamp('2020-01-02 03:04:05'), from_unixtime(0), extract(YEAR FROM DATE '2021-05-06')
SELECT 7 / 2, 7 DIV 2, 7 % 2, -7 % 3, pmod(-7, 3), 2 * 1.5, 1L, 2.5D, round(2.5), bround(2.5)
SELECT substr(name, 1, 2), substring(name, 2), initcap(lower(name)), lpad(name, 6, '*'), concat_ws('|', name, dept) FROM people ORDER BY id
SELECT split('a,b,c', ','), split_part('a-b', '-', 2), regexp_extract('ab12', '([a-z]+)([0-9]+)', 2), regexp_replace('a1b2', '[0-9]', '#')
SELECT name RLIKE '^A', name LIKE '%a', name ILIKE 'an%', 'a\'b', r'\d', trim('  x ') FROM people ORDER BY id
SELECT coalesce(dept, 'none'), nvl(dept, '?'), nullif(age, 41), if(age > 30, 'old', 'young'), nvl2(dept, 1, 0) FROM people ORDER BY id
SELECT CAST('12' AS INT), try_cast('x' AS INT), '3' + 4, DOUBLE('1.5'), STRING(3), x'1F', typeof(1.0), array(1, 2)[0]
SELECT p.name FROM people p LEFT SEMI JOIN sales s ON p.id = s.person ORDER BY 1
SELECT p.name FROM people p LEFT ANTI JOIN sales s ON p.id = s.person ORDER BY 1
SELECT * EXCEPT (j, note, scores, tags, address) FROM people ORDER BY id
WITH big AS (SELECT * FROM sales WHERE amount > 2) SELECT product, sum(amount) FROM big GROUP BY product ORDER BY product
SELECT id, name FROM people WHERE id IN (SELECT person FROM sales) OR dept <=> NULL ORDER BY id
SELECT 'a' AS k UNION ALL SELECT name FROM people MINUS SELECT 'Bea' ORDER BY 1
SELECT id FROM people WHERE answer(note, 'mood?') = 'happy' ORDER BY id
SELECT id, answer(note, 'mood?') AS mood FROM people ORDER BY id
SELECT answer(note, 'mood?') AS mood, count(*) AS n FROM people GROUP BY answer(note, 'mood?') ORDER BY n DESC, mood
SELECT answer(note, 'mood?') AS mood, collect_list(id) AS ids FROM (SELECT * FROM people ORDER BY id) GROUP BY mood ORDER BY mood
SELECT dept, count_if(answer(note, 'mood?') = 'happy') AS n FROM people GROUP BY dept ORDER BY dept
SELECT dept, count(*) FILTER (WHERE answer(note, 'mood?') = 'sad') AS n FROM people GROUP BY dept ORDER BY dept
SELECT name, tag FROM people LATERAL VIEW explode(tags) t AS tag WHERE answer(note, 'mood?') = 'happy' ORDER BY name, tag
SELECT name, tag, answer(note, 'mood?') AS mood FROM people LATERAL VIEW OUTER explode(tags) t AS tag ORDER BY name, tag
SELECT name, pos, tag FROM people LATERAL VIEW posexplode(tags) AS pos, tag WHERE pos = 0 AND answer(note, 'mood?') IS NOT NULL ORDER BY name
SELECT named_struct('id', id, 'mood', answer(note, 'mood?')) AS s FROM people ORDER BY id
SELECT struct(id, answer(note, 'mood?') AS mood).mood AS m FROM people ORDER BY id
SELECT array(name, answer(note, 'mood?')) AS a FROM people ORDER BY id
SELECT map('mood', answer(note, 'mood?')) AS m FROM people ORDER BY id
SELECT id, upper(answer(note, 'mood?')) AS mood, length(answer(note, 'mood?')) AS n FROM people ORDER BY id
SELECT id, coalesce(answer(note, 'mood?'), 'unknown') AS mood FROM people ORDER BY id
SELECT id, if(answer(note, 'mood?') = 'happy', 1, 0) AS h FROM people ORDER BY id
SELECT id, CASE answer(note, 'mood?') WHEN 'happy' THEN ':)' WHEN 'sad' THEN ':(' ELSE '?' END AS face FROM people ORDER BY id
SELECT id, nvl(answer(note, 'mood?'), dept) AS m FROM people WHERE age > 25 ORDER BY id
SELECT id FROM people WHERE answer(note, 'mood?') RLIKE '^h' ORDER BY id
SELECT id FROM people WHERE answer(note, 'mood?') LIKE 's%' OR age > 60 ORDER BY id
SELECT id FROM people WHERE answer(note, 'mood?') IN ('happy', 'calm') AND dept = 'dev' ORDER BY id
SELECT id FROM people WHERE answer(note, 'mood?') <=> NULL ORDER BY id
SELECT id FROM people WHERE NOT (answer(note, 'mood?') = 'happy') ORDER BY id
SELECT id, CAST(answer(note, 'how many?') AS INT) AS n FROM people ORDER BY id
SELECT sum(CAST(answer(note, 'how many?') AS INT)) AS n FROM people
SELECT id FROM people WHERE CAST(answer(note, 'how many?') AS INT) > 2 ORDER BY id
SELECT dept, avg(CAST(answer(note, 'how many?') AS DOUBLE)) AS m FROM people GROUP BY dept ORDER BY dept
SELECT dept, percentile(CAST(answer(note, 'how many?') AS INT), 0.5) AS m FROM people GROUP BY dept ORDER BY dept
SELECT id, try_cast(answer(note, 'mood?') AS INT) AS n FROM people ORDER BY id
SELECT name, rank() OVER (PARTITION BY answer(note, 'mood?') ORDER BY salary DESC) AS r FROM people ORDER BY name
SELECT name, row_number() OVER (ORDER BY answer(note, 'mood?') NULLS LAST, id) AS r FROM people ORDER BY name
SELECT name, sum(age) OVER (PARTITION BY dept) AS s FROM people WHERE answer(note, 'mood?') = 'happy' ORDER BY name
SELECT * FROM (SELECT dept, answer(note, 'mood?') AS mood, age FROM people) PIVOT (sum(age) FOR mood IN ('happy', 'sad')) ORDER BY dept
SELECT dept, answer(note, 'mood?') AS mood, count(*) AS n FROM people GROUP BY GROUPING SETS ((dept), (answer(note, 'mood?'))) ORDER BY dept, mood
SELECT answer(note, 'mood?') AS mood, count(*) AS n FROM people GROUP BY ROLLUP (answer(note, 'mood?')) ORDER BY mood, n
SELECT dept, count(*) AS n FROM people WHERE answer(note, 'mood?') = 'happy' GROUP BY ALL ORDER BY ALL
SELECT dept, count(*) AS n FROM people GROUP BY dept HAVING max(answer(note, 'mood?')) = 'sad' ORDER BY dept
SELECT id, size(split(answer(note, 'mood?'), 'a')) AS parts FROM people ORDER BY id
SELECT id, transform(tags, t -> upper(t)) AS u FROM people WHERE answer(note, 'mood?') = 'happy' ORDER BY id
SELECT id, filter(tags, t -> t LIKE 'g%') AS g, answer(note, 'mood?') AS mood FROM people ORDER BY id
SELECT date_format(hired, 'yyyy') AS y, count(*) AS n FROM people WHERE answer(note, 'mood?') = 'happy' GROUP BY date_format(hired, 'yyyy') ORDER BY y
SELECT id, datediff(DATE '2024-01-01', hired) AS days FROM people WHERE answer(note, 'mood?') = 'sad' ORDER BY days, id
SELECT p.name, s.product FROM people p JOIN sales s ON p.id = s.person WHERE answer(p.note, 'mood?') = 'happy' ORDER BY p.name, s.id
SELECT p.name FROM people p LEFT SEMI JOIN sales s ON p.id = s.person WHERE answer(p.note, 'mood?') = 'happy' ORDER BY 1
SELECT p.name FROM people p LEFT ANTI JOIN sales s ON p.id = s.person WHERE answer(p.note, 'mood?') IS NOT NULL ORDER BY 1
WITH moods AS (SELECT id, answer(note, 'mood?') AS mood FROM people) SELECT mood, count(*) AS n FROM moods GROUP BY mood ORDER BY mood
SELECT id, mood FROM (SELECT id, answer(note, 'mood?') AS mood FROM people) WHERE mood IS NOT NULL ORDER BY id
SELECT id FROM people WHERE id IN (SELECT person FROM sales) AND answer(note, 'mood?') = 'happy' ORDER BY id
SELECT id, from_json(j, 'a INT, b STRING').a AS a, answer(note, 'mood?') AS m FROM people ORDER BY id
SELECT id, answer(get_json_object(j, '$.b'), 'mood?') AS m FROM people ORDER BY id
SELECT address.city, max(answer(note, 'mood?')) AS m FROM people GROUP BY address.city ORDER BY 1
SELECT id, scores['a'] AS a FROM people WHERE answer(note, 'mood?') = 'happy' AND scores['a'] > 0 ORDER BY id
-- NOT IN with an answer is NULL where the answer is, or the list holds NULL.
SELECT id FROM people WHERE answer(note, 'mood?') NOT IN (SELECT max('calm') FROM sales) ORDER BY id
SELECT id FROM people WHERE answer(note, 'mood?') NOT IN (SELECT dept FROM people) ORDER BY id
SELECT id FROM people WHERE NOT (answer(note, 'mood?') IN (SELECT max('sad') FROM sales) AND age > 30) ORDER BY id
SELECT id FROM people WHERE upper(answer(note, 'mood?')) NOT IN (SELECT max('SAD') FROM sales) OR dept NOT IN (SELECT dept FROM people WHERE id < 5) ORDER BY id
SELECT id FROM people WHERE (dept, answer(note, 'mood?')) NOT IN (SELECT max('dev'), max('sad') FROM sales) ORDER BY id
SELECT id FROM people WHERE (answer(note, 'mood?') IN (SELECT dept FROM people)) IS NULL ORDER BY id
SELECT id, answer(note, 'mood?') NOT IN (SELECT max('calm') FROM sales) AS n, answer(note, 'mood?') IN (SELECT max('calm') FROM sales) AS i FROM people ORDER BY id
-- Texts with escapes.
SELECT '\u0041\U0001F600\102\0\Z\q' AS t, id FROM people WHERE name = '\u0041nn' OR name = '\102ea' ORDER BY id
SELECT id, '\u0041\q\%' AS t FROM people WHERE answer(note, 'mood?') = '\u0073ad' OR name = '\104an' ORDER BY id
-- Fields, keys, NULLs and casts beside an answer.
SELECT id, to_json(struct(ID, dept)) AS j, struct(name AS Name, answer(note, 'mood?')) AS s FROM people ORDER BY id
SELECT id, arrays_zip(tags, array(id)) AS z, (dept, id) AS r, answer(note, 'mood?') AS m FROM people ORDER BY id
SELECT dept, max(struct(answer(note, 'mood?'), id)) AS m FROM people GROUP BY dept ORDER BY dept
SELECT s.id, s.mood FROM (SELECT struct(id, answer(note, 'mood?') AS mood) AS s FROM people) ORDER BY 1
SELECT id, try_cast(name AS INT) AS n, answer(note, 'mood?') AS m FROM people WHERE try_cast(dept AS DATE) IS NULL ORDER BY id
SELECT dept, answer(note, 'mood?') AS mood, count(*) AS n FROM people GROUP BY ALL ORDER BY dept, mood
SELECT id, last_value(answer(note, 'mood?')) IGNORE NULLS OVER (ORDER BY id) AS l FROM people ORDER BY id
SELECT id, first_value(dept) IGNORE NULLS OVER (ORDER BY id DESC) AS f, lag(age, 1) RESPECT NULLS OVER (ORDER BY id) AS g, answer(note, 'mood?') AS m FROM people ORDER BY id
SELECT dept, first(answer(note, 'mood?')) IGNORE NULLS AS f FROM people GROUP BY dept ORDER BY dept
SELECT dept, count(answer(note, 'mood?')) AS n FROM people GROUP BY ROLLUP (dept) HAVING grouping(dept) = 0 ORDER BY dept
SELECT dept, count(answer(note, 'mood?')) AS n FROM people GROUP BY ROLLUP (dept) HAVING dept IS NULL OR count(answer(note, 'mood?')) > 1 ORDER BY n, dept
SELECT id, dateadd(DAY, 3, hired) AS d, timestampdiff(MONTH, hired, DATE '2024-01-01') AS n, answer(note, 'mood?') AS m FROM people ORDER BY id
-- What is in Spark's grammar, not in its registry.
SELECT * FROM (SELECT id, dept, name FROM people) UNPIVOT INCLUDE NULLS (v FOR k IN (dept, name)) ORDER BY id, k
SELECT * FROM (SELECT id, name, answer(note, 'mood?') AS mood FROM people) UNPIVOT EXCLUDE NULLS (v FOR k IN (mood, name)) ORDER BY id, k
SELECT * FROM (SELECT age, dept, name FROM people) PIVOT (sum(age) FOR (dept, name) IN (('dev', 'Ann') AS a, ('ops', 'Cid') AS c))
SELECT timestampdiff(DAY, DATE '2024-01-01', hired) AS n, dateadd(MONTH, 1, hired) AS d, .5 AS h, CAST(name AS VARCHAR(2)) AS v FROM people ORDER BY id
SELECT id, .5 AS h, CAST(name AS VARCHAR(2)) AS v, CAST(answer(note, 'mood?') AS CHAR(2)) AS m FROM people ORDER BY id
