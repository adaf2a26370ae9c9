"""What the local parser knows of English: words of comparison, order, politeness; it knows nothing of any source."""

from __future__ import annotations

from collections.abc import Mapping

from almanaq.agent.local.words import word_set

IGNORED = word_set(
    """
    someone somebody anyone everyone mood must trying insist
    a an the please can could would should will shall may might do does did done i i'm i'd i've me my mine we we're
    our us you your yours u it its it's they their them he she his her him this these those there here hi hello hey
    ok okay yes thanks thank is are was were be been being am isn't what what's whats which who whom whose how when
    why that where's where to of in on at by from into as if then than so just also too very really quite pretty any
    some each every all both such one ones thing things something anything somewhere anywhere place places spot
    spots joint joints option options kind kinds sort type types around near nearby area within among across show
    list give tell find get name see know want wanna need like looking look search searching recommend recommends
    recommended recommendation recommendations suggest suggestion suggestions suggested try go going went visit come
    coming have has had having there's they're let let's help think feel prefer love loves eat eating dine grab
    today tonight tomorrow now week next year years currently currently-open again more most less least exist exists
    existing available display return report provide me's with and or but belong belongs contain contains records
    record entries entry information info details detail data database table much many number count different
    distinct total per worth good great nice decent favorite favourite ever about not no only same given order
    sorted ordered well average mean avg maximum minimum max min sum born came out earn earns earning paid made make
    makes say says said people reviewers customers mention mentions else other descending ascending desc asc using
    according use used old still everybody
    """
)
"""Words that carry no condition of their own; some are cues for the words beside them."""

GLUE = word_set(
    """
    a an the of to in on at for or by from my your our their his her its as into is are it you i we that they very
    really too so with about good during over after before while through be get can not
    """
)
"""Words that may stand inside a phrase but neither begin nor end one."""

ENTITY_WORDS = word_set(
    """
    place places spot spots somewhere anywhere joint joints option options one ones anything something
    """
)
"""Words that stand for a row of whatever the source is about."""

QUALITY = word_set(
    """
    good great nice decent favorite favourite excellent amazing awesome fantastic solid recommend
    """
)
NEGATIONS = word_set(
    """
    not no non without except excluding neither nor never isn't aren't doesn't don't avoid
    """
)

SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split(","))
    for group in (
        "cheap,inexpensive,affordable,budget,low cost,low-cost,low priced,low-priced,tight budget,economical",
        "moderate,mid-range,mid range,midrange,medium,moderately priced,reasonably priced,reasonable",
        "expensive,pricey,upscale,high-end,high end,costly",
        "luxury,luxurious,fine dining,fine-dining,splurge",
        "male,man,m,boy",
        "female,woman,f,girl",
        "usa,us,united states,america,american,u.s.",
        "uk,united kingdom,britain,british,great britain",
        "france,french",
        "germany,german",
        "italy,italian",
        "spain,spanish",
        "china,chinese",
        "japan,japanese",
        "india,indian",
        "mexico,mexican",
        "canada,canadian",
        "netherlands,dutch,holland",
        "brazil,brazilian",
        "russia,russian",
        "australia,australian",
        "sweden,swedish",
        "switzerland,swiss",
        "ireland,irish",
        "greece,greek",
        "korea,korean,south korea",
        "england,english",
        "scotland,scottish",
        "wales,welsh",
        "portugal,portuguese",
        "denmark,danish",
        "norway,norwegian",
        "finland,finnish",
        "poland,polish",
        "austria,austrian",
        "belgium,belgian",
        "hungary,hungarian",
        "romania,romanian",
        "bulgaria,bulgarian",
        "croatia,croatian",
        "serbia,serbian",
        "ukraine,ukrainian",
        "czech republic,czechia,czech",
        "iceland,icelandic",
        "egypt,egyptian",
        "morocco,moroccan",
        "nigeria,nigerian",
        "kenya,kenyan",
        "ghana,ghanaian",
        "south africa,south african",
        "argentina,argentine,argentinian",
        "colombia,colombian",
        "peru,peruvian",
        "cuba,cuban",
        "thailand,thai",
        "vietnam,vietnamese",
        "indonesia,indonesian",
        "philippines,filipino,philippine",
        "pakistan,pakistani",
        "israel,israeli",
        "iran,iranian",
        "lebanon,lebanese",
        "new zealand,new zealander",
        "europe,european",
        "asia,asian",
        "africa,african",
        "true,yes,y",
        "false,no,n",
        "movie,film",
        "singer,artist,musician,performer",
        "employee,staff,worker,personnel",
        "city,town",
        "apartment,flat",
        "shop,store",
        "car,vehicle,automobile",
        "airplane,aircraft,plane",
        "teacher,instructor",
        "pupil,student",
        "doctor,physician",
        "country,nation",
    )
)
"""Groups of words that name one value or one relation."""

PRICE_SCALE = SYNONYMS[:4]
"""Words for prices, from cheap to dear."""

ADJECTIVE_ENDINGS = (
    "ic",
    "ful",
    "ous",
    "able",
    "ible",
    "ive",
    "less",
    "ant",
    "ent",
    "ish",
    "friendly",
    "-free",
    "some",
    "esque",
    "ary",
)
ADJECTIVES = word_set(
    """
    quiet loud clean dirty warm casual fancy fresh spicy vegan vegetarian halal kosher open slow fast quick busy big
    small modern calm safe cool hip trendy dark bright late cozy cosy noisy crowded relaxed funny scary sad sunny
    lively cheerful formal informal kid-friendly dog-friendly pet-friendly family-friendly lgbt-friendly friendly
    healthy tasty crunchy creamy rude kind smart stylish chill chic rustic classy intimate special unusual
    traditional local original long short strong weak hard easy free private unique overpriced underrated outdoor
    indoor comfortable wheelchair-accessible accessible polite upbeat touristy laid-back hot cold flavorful
    gluten-free emotional historical musical magical
    """
)
NOT_ADJECTIVES = word_set(
    """
    music traffic picnic magic comic garlic clinic mechanic restaurant parent event student plant assistant patient
    talent president accident agent content rent tent archive drive table vegetable library salary glossary elephant
    croissant basic handful attendant
    """
)
FOODS = word_set(
    """
    pizza pasta ramen sushi sashimi burger burgers taco tacos burrito burritos noodle noodles soup salad steak
    steaks sandwich sandwiches dumpling dumplings curry pho dessert desserts cake cakes cheesecake pie tiramisu
    gelato sorbet crepe crepes waffle waffles pancake pancakes croissant croissants bagel bagels bread breakfast
    brunch coffee espresso latte tea boba matcha wine wines beer beers cocktail cocktails sake tequila whiskey
    margarita margaritas lobster crab shrimp oyster oysters clam seafood fish salmon tuna poke chicken duck beef
    pork lamb rib ribs barbecue bbq bacon egg eggs tofu falafel hummus kebab shawarma gyro paella tapas risotto
    lasagna gnocchi ravioli carbonara mussel mussels fries fondue cheese chowder chili nachos enchiladas quesadilla
    tamales churros donut donuts doughnut doughnuts cookie cookies chocolate milkshake milkshakes smoothie juice
    yogurt biryani naan samosa dosa tandoori udon soba tempura katsu bibimbap kimchi bulgogi dimsum hotpot congee
    wonton wontons omelette avocado toast schnitzel bratwurst empanadas ceviche arepas jambalaya gumbo grits
    meatballs tartare foie caviar
    """
)
"""Common dishes and drinks: they send a phrase to a column of dishes, where there is one."""
IDIOMS = frozenset(
    tuple(phrase.split())
    for phrases in (
        ("happy hour", "rush hour", "high chair", "wine list", "beer list", "beer garden", "tea light", "dining room"),
        ("price tag", "star chef", "food poisoning", "bar food", "lunch special", "lunch menu", "dinner menu"),
        ("kids menu", "kid menu", "open mic", "open kitchen", "open late", "brick oven", "live music", "dance floor"),
    )
    for phrase in phrases
)
"""Pairs of words that mean one thing, and nothing that either of them names in a schema."""
ORDINARY = word_set("room house rooms fast soul middle cream food time")
"""Words that are part of an option's name and say nothing without the rest of it."""

UNITS: Mapping[str, tuple[str, ...]] = {
    "star": ("rating",),
    "rated": ("rating",),
    "rating": ("rating",),
    "dollar": ("price", "pay"),
    "buck": ("price",),
    "$": ("price", "pay"),
    "€": ("price", "pay"),
    "£": ("price", "pay"),
    "priced": ("price",),
    "cost": ("price",),
    "old": ("age",),
    "older": ("age",),
    "younger": ("age",),
    "aged": ("age",),
    "age": ("age",),
    "minute": ("length",),
    "min": ("length",),
    "hour": ("length",),
    "long": ("length",),
    "longer": ("length",),
    "shorter": ("length",),
    "earn": ("pay",),
    "earning": ("pay",),
    "make": ("pay",),
    "making": ("pay",),
    "paid": ("pay",),
    "item": ("quantity",),
    "piece": ("quantity",),
    "copy": ("quantity",),
    "money": ("pay", "revenue"),
    "people": ("size",),
    "person": ("size",),
    "inhabitant": ("size",),
    "resident": ("size",),
    "seat": ("size",),
    "tall": ("height",),
    "taller": ("height",),
    "heavier": ("weight",),
    "lighter": ("weight",),
    "charge": ("price", "pay"),
    "worth": ("worth", "price"),
    "weigh": ("weight",),
    "mile": ("distance",),
    "km": ("distance",),
    "cheaper": ("price",),
    "pricier": ("price",),
}
"""Words beside a number, and the roles of the columns they speak of, the likeliest first."""

ADMIRED = {
    "popular": "reviews", "reviewed": "reviews", "famous": "reviews", "known": "reviews", "rated": "rating",
    "paid": "pay", "experienced": "experience", "valuable": "worth", "expensive": "price",
}  # fmt: skip
"""Adjectives after "most" and "least", and the roles of the columns that they speak of."""
