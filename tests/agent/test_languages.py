"""A question in another language is told apart from English, and declined in that language's name."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.agent.small_talk import detect_language

SAID = {
    "French": ["quels restaurants sont ouverts le dimanche ?", "Combien de pingouins y a-t-il dans la table ?"],
    "German": ["wie viele Kunden gibt es in Berlin?", "Welche Filme wurden von Fritz Lang gedreht und wo?"],
    "Spanish": [
        "¿cuántos pedidos hay en cada ciudad?",
        "muestra todos los clientes de Madrid que tienen más de 30 años",
    ],
    "Italian": ["quanti libri ci sono nella biblioteca?", "mostra tutti gli ordini della settimana"],
    "Portuguese": ["quantos alunos há em cada turma?", "quais são os filmes mais longos?"],
    "Dutch": ["hoeveel klanten zijn er in Utrecht?", "welke boeken zijn het langst?"],
    "Swedish": ["hur många kunder finns det i Lund?", "vilka filmer är längst och när kom de?"],
    "Polish": ["ile jest klientów w Krakowie?", "które filmy są najdłuższe i kto je nakręcił?"],
    "Turkish": ["kaç müşteri var?", "en çok satan ürün hangi?"],
    "Indonesian": ["berapa banyak pelanggan di Bandung?", "film apa yang paling panjang?"],
    "Russian": ["сколько клиентов в Москве?"],
    "Chinese": ["北京有多少客户?"],
    "Japanese": ["いちばんながいえいがはどれですか"],
}


@pytest.mark.parametrize(("language", "question"), [(name, q) for name, asked in SAID.items() for q in asked])
def test_a_language_is_known_by_its_commonest_words(language, question):
    assert detect_language(question) == language


@pytest.mark.parametrize(
    "question",
    [
        "how many growers are there?",
        "total kilos per town in 2023",
        "who is the oldest player of the Turkish squad",
        "who directed Das Boot?",
        "how many customers are in La Paz",
        "hi",
        "",
        "movies by Les Blank",
    ],
)
def test_english_stays_english(question):
    assert detect_language(question) is None


def test_it_is_declined_in_its_name():
    with almanaq.connect("sample:restaurants", cache=False) as connection:
        reply = connection.ask("quels restaurants sont ouverts le dimanche ?")
    assert (reply.status, reply.rows) == ("no_query", ())
    assert "French" in reply.answer
