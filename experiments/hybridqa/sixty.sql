-- Sixty SUQL queries over HybridQA's validation tables, written by hand: ten of each of the six types of questions that the
-- SUQL paper lists (table 2). Each begins with its type and the id of its question; "relation" stands for its gold table.
--
-- I    a condition on cells, an answer from a passage
-- II   a condition on a passage, an answer from a cell
-- III  a condition on a passage, an answer from another passage
-- IV   conditions on cells and on a passage, an answer from a cell
-- V    rows compared, counted or computed by what their passages say
-- VI   a superlative over what passages say, an answer from a cell
--
-- How they were chosen: in the order of sha256("sixty " || query_id), the first ten of each type whose questions about
-- passages have a form that the oracle knows (forms.py), or can be asked for yes or no; V and VI, which are rare, among
-- the questions that compare or count by their words. Types were judged from the question and the header. They were
-- written after the oracle, from the questions, the headers and the cells: neither passages nor gold answers were looked at.

-- I 05fcda927996b968
SELECT answer("Stadium_Info", 'which suburb is it located in?') FROM relation WHERE "Home team" ILIKE '%bulls%';

-- I 0dddb228ab17c119
SELECT answer("State/Country_Info", 'what is the capital of this state?') FROM relation
WHERE "Tournament" ILIKE 'Livermore Valley Wine Country%';

-- I 89c6d9b8076d109c
SELECT answer("School_Info", 'what was the old arena?') FROM relation WHERE "Winner" = 'Andrew Murray';

-- I 08466917653bd712
SELECT answer("Team_Info", 'when was this organization founded?') FROM relation WHERE "Titles" = 2;

-- I 126a135d05a6db3d
SELECT answer("Title_Info", 'who hosted this show?') FROM relation WHERE "First Broadcast" = 2007;

-- I 516f178e5a7c6503
SELECT answer("Name_Info", 'in what month was this person born?') FROM relation WHERE "Rank" = 3;

-- I 2942626f8bf48862
SELECT answer("Residence_Info", 'who established this city?') FROM relation WHERE "Name" = 'Bonnie Dominguez';

-- I e8235a5e4b538a03
SELECT answer("Title_Info", 'who starred in this film?') FROM relation WHERE "Director" = 'Wilson Yip';

-- I 101d5078ac7fbaf6
SELECT answer("Party_Info", 'what is the full name of this party?') FROM relation WHERE "Name" = 'Olaf Scholz' LIMIT 1;

-- I 22b6a12fee6d055b
SELECT answer("Trainer_Info", 'where did he get his first win?') FROM relation ORDER BY "Year" DESC LIMIT 1;

-- II 0be924155423a4a4
SELECT "Degree" FROM relation WHERE answer("Name_Info", 'was this person born on 5 September 1885?') = 'Yes';

-- II bb3925e0a7e1f916
SELECT "Rank" FROM relation
WHERE answer("Field_Info", 'is it cultivated worldwide and the most widely grown species in the genus Malus?') = 'Yes';

-- II dc5e30d0975bd360
SELECT "Assigned Aircraft" FROM relation
WHERE answer("Squadron_Info", 'is this squadron working on the USS Theodore Roosevelt?') = 'Yes';

-- II aa45022549f3d0aa
SELECT "Year" FROM relation WHERE answer("Title_Info", 'were its special effects created by Brock Jolliffe?') = 'Yes';

-- II b393a2603bed5d23
SELECT "Role" FROM relation WHERE answer("Title_Info", 'is it a 17th century play by John Webster?') = 'Yes';

-- II c63679c6115dcd39
SELECT "Character name ( s )" FROM relation
WHERE answer("Work_Info", 'was it named after a hit song by Don Partridge?') = 'Yes';

-- II f72d9dd89b32125e
SELECT "Name" FROM relation
WHERE answer("Location_Info", 'is it 3.5 miles ( 5.6 km ) south-east of Charing Cross?') = 'Yes';

-- II 89278666907d6d08
SELECT "Pos" FROM relation
WHERE answer("Previous team_Info", 'does this team hold the record for the most recorded wins of any NBA team?') = 'Yes';

-- II 7dc59d0f93ee4c80
SELECT "Building or complex" FROM relation
WHERE answer("Architect_Info", 'was this person a Presbyterian missionary in Canada?') = 'Yes';

-- II ad575b3c63388934
SELECT "Capacity" FROM relation WHERE answer("City_Info", 'is it the capital of the Department of Huila?') = 'Yes';

-- III 10cd72419e0eae88
SELECT answer("Service_Info", 'what is the official name of this service?') FROM relation
WHERE answer("Name_Info", 'is this person nicknamed Digger?') = 'Yes';

-- III 5f6685b9482adb40
SELECT answer("Children_Info", 'who is his mother?') FROM relation
WHERE answer("Parent_Info", 'was this person called Rainy Drinkwater in a publicity stunt?') = 'Yes';

-- III 10b5757e40e5b7e2
SELECT answer("Name_Info", 'what was it formerly known as?') FROM relation
WHERE answer("Architect_Info", 'did he influence later architects such as Pietro Belluschi?') = 'Yes'
AND answer("Name_Info", 'is it a mixed-use office tower?') = 'Yes';

-- III db1930a238c9438f
SELECT answer("Song Title_Info", 'who wrote this song?') FROM relation
WHERE answer("Artist_Info", 'did the debut album have the track Long Black Train?') = 'Yes';

-- III ea7b4e1aa3a77671
SELECT answer("Urban Area_Info", 'how far is it from Christchurch?') FROM relation
WHERE answer("Region_Info", 'did it have 617,700 residents as of 2018?') = 'Yes'
AND answer("Urban Area_Info", 'how far is it from Christchurch?') IS NOT NULL;

-- III f91a76ab979a0412
SELECT answer("Program_Info", 'who is primarily credited with creating this drama?') FROM relation
WHERE answer("New network_Info", 'is this network owned by Bell Media?') = 'Yes'
OR answer("Previous network ( s )_Info", 'is this network owned by Bell Media?') = 'Yes';

-- III 3192109bd3e443aa
SELECT answer("Country/State_Info", 'what is the capital of this country?') FROM relation
WHERE answer("Athlete_Info", 'did this person participate in the Summer Paralympics from 1980 to 1996?') = 'Yes';

-- III f56c21143cf5b74b
SELECT answer(aircraft, 'how many seats does it have?') FROM relation, unnest("Application_Info") AS aircraft
WHERE answer("Manufacturer_Info", 'does it work closely with a turbine manufacturer located in Zaporizhia?') = 'Yes'
AND answer(aircraft, 'is it a twin turboprop transport aircraft designed in 1957?') = 'Yes';

-- III 1bcc36801ece09e6
SELECT answer("To_Info", 'along what river is this town located?') FROM relation
WHERE answer("Route_Info", 'was it redesignated as Leeds and Grenville County Road 32?') = 'Yes';

-- III eefd905a8ba3f3c6
SELECT answer("State_Info", 'in what year was this state founded?') FROM relation
WHERE answer("Name of Town_Info", 'is it 44 kilometers from Makrana Railway station?') = 'Yes';

-- IV c785e669858ec6f2
SELECT "Name" FROM relation
WHERE "Age" = (SELECT "Age" + 1 FROM relation WHERE answer("Name_Info", 'was this person a Baptist minister?') = 'Yes' LIMIT 1);

-- IV 6434375a082a398f
SELECT "Station" FROM relation WHERE answer("Fuel_Info", 'is this fuel also known as turf?') = 'Yes'
ORDER BY "Capacity ( MW )" DESC LIMIT 1;

-- IV 5cf1b35da1c57212
SELECT "Player" FROM relation
WHERE "Fee/Notes" = 'Free Transfer' AND answer("Player_Info", 'is this person an American?') <> 'Yes';

-- IV f2c071c0ad0f0236
SELECT "Role" FROM relation WHERE "Year" = 1988 AND answer("Title_Info", 'is it a parody?') = 'Yes';

-- IV 330785d81c36c0ed
SELECT split_part("Location", ' 5', 1) FROM relation
WHERE "Denomination/ Affiliation" = 'Anglican' AND answer("Location_Info", 'does it straddle the A29?') = 'Yes';

-- IV 08fb35f10817f4cf
SELECT "Title" FROM relation
WHERE "Year" LIKE '%2009%' AND answer("Title_Info", 'is it a six-part television series?') = 'Yes';

-- IV 70c789b849dc85b8
SELECT "Title" FROM relation WHERE "Release" BETWEEN 1990 AND 1999
AND (answer("Original platform_Info", 'was it the first platform to ship over 100 million units?') = 'Yes'
OR answer("Ports_Info", 'was it the first platform to ship over 100 million units?') = 'Yes');

-- IV 19f9db0257d6ab7c
SELECT "Song" FROM relation
WHERE "Album/Single" ILIKE 'Coast to Coast%' AND answer("Song_Info", 'was it also released acoustically?') = 'Yes';

-- IV 0885f9744bf8f219
SELECT "Church" FROM relation WHERE answer("Locality_Info", 'was it built by George Andrew?') = 'Yes'
ORDER BY "Completed" LIMIT 1;

-- IV ec037baed0aa50f1
SELECT "MVC Champion" FROM relation
WHERE "Runner-up" = 'Indiana State' AND answer("Year_Info", 'was it the 2nd MVC tournament title?') = 'Yes';

-- V c543f8abbe87fc13
SELECT count(*) FROM relation
WHERE "Position" = 'Wingman' AND answer("Name_Info", 'did this person become a coach after retiring as a player?') = 'Yes';

-- V 93d45a0743f09276
SELECT count(DISTINCT "Country") FROM relation
WHERE "Built" < 1800 AND answer("Country_Info", 'how many square kilometres is its area?')::numeric < 100000;

-- V 679d2f6ac9990d64
WITH born AS (
  SELECT answer("Player_Info", 'when was this person born?')::date AS day, answer("Player_Info", 'is he currently a Czech?') AS czech,
    answer("Player_Info", 'is he an unrestricted free agent?') AS free FROM relation
)
SELECT abs(12 * (extract(year FROM a.day) - extract(year FROM b.day)) + extract(month FROM a.day) - extract(month FROM b.day))
FROM born AS a, born AS b WHERE a.czech = 'Yes' AND b.free = 'Yes' AND a.day <> b.day;

-- V fb0178143f1de4b1
SELECT count(*) FROM relation WHERE answer("City_Info", 'is it the capital of Tasmania?') = 'Yes';

-- V 0d154cd21fb97011
SELECT count(*) FROM relation
WHERE "Venue" ILIKE 'Madison Square Garden%' AND answer("MVP_Info", 'in what year was this person born?')::int > 1970;

-- V 52fc7be8baae65cf
SELECT count(*) FROM relation WHERE answer("Currency_Info", 'is it the currency of France?') = 'Yes';

-- V d3b7b61f076bcfd2
SELECT answer("Artist_Info", 'what is the full name of this person?') FROM relation
WHERE "US" = 2 ORDER BY answer("Artist_Info", 'when was this person born?')::date DESC LIMIT 1;

-- V a658664b7c075f2e
SELECT max(born) - min(born) FROM (
  SELECT answer("Member_Info", 'in what year was this person born?')::int AS born FROM relation
  WHERE "Province" = 'Otago' AND "Member" LIKE '% Cargill'
) AS members;

-- V ad33e20092b082c2
SELECT count(*) FROM relation WHERE answer("Name_Info", 'in what year was this person born?')::int = 1977;

-- V 78b0e268a721df37
SELECT count(*) FROM relation
WHERE answer("City , State_Info", 'does this city have a population of 2,190,209?') = 'Yes';

-- VI c1453eb8e03f67cd
SELECT "Pos" FROM relation WHERE "No" >= 15 ORDER BY answer("Name_Info", 'when was this person born?')::date LIMIT 1;

-- VI e6efde9c7246e49a
SELECT "Director" FROM relation WHERE "Year" BETWEEN 1980 AND 1989
ORDER BY answer("Director_Info", 'when was this person born?')::date DESC LIMIT 1;

-- VI e4b5380fae695563
SELECT "Opponent in the final" FROM relation WHERE "Year" BETWEEN 1989 AND 1991 GROUP BY "Opponent in the final"
ORDER BY min(answer("Opponent in the final_Info", 'when was this person born?')::date) LIMIT 1 OFFSET 1;

-- VI 19731cada6b2418e
SELECT "Club" FROM relation WHERE "League/Division" = 'Victorian State League Division 5'
ORDER BY answer("City_Info", 'what is the population?')::int LIMIT 1;

-- VI 25d6f29b970711df
SELECT "Player" FROM relation WHERE "Position" = 'Defender' ORDER BY answer("Player_Info", 'when was this person born?')::date DESC LIMIT 1;

-- VI 5b3e656298024e0f
SELECT "Name" FROM relation WHERE "Sport" = 'Cycling' ORDER BY answer("Name_Info", 'when was this person born?')::date LIMIT 1;

-- VI 5cc491a8ed9ce69f
SELECT "Position" FROM relation ORDER BY answer("Name_Info", 'when was this person born?')::date LIMIT 1;

-- VI ac0cc6439037698e
SELECT "Performer" FROM relation WHERE "Winner" = 'Sweden' ORDER BY answer("Performer_Info", 'when was this person born?')::date LIMIT 1;

-- VI 84a78d97437f188b
SELECT "Player" FROM relation WHERE "Position" = 'Forward' ORDER BY answer("Player_Info", 'when was this person born?')::date LIMIT 1;

-- VI 084d55c138f9a231
SELECT "Opponent in the final" FROM relation WHERE "Year" BETWEEN 1991 AND 1994
ORDER BY answer("Opponent in the final_Info", 'when was this person born?')::date DESC LIMIT 1;
