"""How well text that is not English is told from English stories, by `hf_storyend/story_text.py`.

    python benchmarks/english_text.py --stories val.jsonl

English is read from a file of stories; stories in eighteen other languages are put together from the sentences below.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from itertools import islice

from hf_storyend.data.stories import load_stories
from hf_storyend.pretrained import load
from hf_storyend.story_text import function_word_share, looks_english, non_latin_share, split_story, unknown_share

NAMES = "Mei Omar Nina Tom Sara Anna Jack Lucy Ben Maria".split()
SENTENCES = {
    "German": "{} wollte einen Kuchen backen.|Der Ofen war sehr heiß.|{} ging mit dem Hund in den Park.|Es "
    "regnete den ganzen Tag.|Die Kinder spielten im Garten.|Niemand hatte den Schlüssel gesehen.|Am "
    "Abend war {} sehr müde.",
    "French": "{} voulait faire un gâteau.|Le four était très chaud.|{} est allé au parc avec le chien.|Il a "
    "plu toute la journée.|Les enfants jouaient dans le jardin.|Personne n'avait vu la clé.|Le soir, "
    "{} était très fatigué.",
    "Spanish": "{} quería hacer un pastel.|El horno estaba muy caliente.|{} fue al parque con el perro.|Llovió "
    "todo el día.|Los niños jugaban en el jardín.|Nadie había visto la llave.|Por la noche {} estaba "
    "muy cansado.",
    "Italian": "{} voleva fare una torta.|Il forno era molto caldo.|{} andò al parco con il cane.|Piovve tutto "
    "il giorno.|I bambini giocavano in giardino.|Nessuno aveva visto la chiave.|La sera {} era molto "
    "stanco.",
    "Portuguese": "{} queria fazer um bolo.|O forno estava muito quente.|{} foi ao parque com o cachorro.|Choveu o "
    "dia inteiro.|As crianças brincavam no jardim.|Ninguém tinha visto a chave.|À noite {} estava "
    "muito cansado.",
    "Dutch": "{} wilde een taart bakken.|De oven was erg heet.|{} ging met de hond naar het park.|Het regende "
    "de hele dag.|De kinderen speelden in de tuin.|Niemand had de sleutel gezien.|In de avond was {} "
    "erg moe.",
    "Swedish": "{} ville baka en kaka.|Ugnen var mycket varm.|{} gick till parken med hunden.|Det regnade hela "
    "dagen.|Barnen lekte i trädgården.|Ingen hade sett nyckeln.|På kvällen var {} mycket trött.",
    "Polish": "{} chciał upiec ciasto.|Piekarnik był bardzo gorący.|{} poszedł z psem do parku.|Cały dzień "
    "padał deszcz.|Dzieci bawiły się w ogrodzie.|Nikt nie widział klucza.|Wieczorem {} był bardzo "
    "zmęczony.",
    "Turkish": "{} bir pasta yapmak istedi.|Fırın çok sıcaktı.|{} köpekle parka gitti.|Bütün gün yağmur "
    "yağdı.|Çocuklar bahçede oynuyordu.|Kimse anahtarı görmemişti.|Akşam {} çok yorgundu.",
    "Finnish": "{} halusi leipoa kakun.|Uuni oli hyvin kuuma.|{} meni puistoon koiran kanssa.|Koko päivän "
    "satoi.|Lapset leikkivät puutarhassa.|Kukaan ei ollut nähnyt avainta.|Illalla {} oli hyvin "
    "väsynyt.",
    "Indonesian": "{} ingin membuat kue.|Ovennya sangat panas.|{} pergi ke taman dengan anjing.|Hujan turun "
    "sepanjang hari.|Anak-anak bermain di kebun.|Tidak ada yang melihat kunci itu.|Malam harinya {} "
    "sangat lelah.",
    "Latin": "{} placentam coquere voluit.|Furnus calidissimus erat.|{} cum cane in hortum ivit.|Totum diem "
    "pluit.|Pueri in horto ludebant.|Nemo clavem viderat.|Vespere {} defessus erat.",
    "Russian": "{} хотел испечь пирог.|Печь была очень горячей.|{} пошёл в парк с собакой.|Весь день шёл дождь.",
    "Greek": "{} ήθελε να φτιάξει ένα κέικ.|Ο φούρνος ήταν πολύ ζεστός.|{} πήγε στο πάρκο.|Έβρεχε όλη μέρα.",
    "Chinese": "{}想烤一个蛋糕。|烤箱很热。|{}带着狗去了公园。|下了一整天的雨。",
    "Japanese": "{}はケーキを焼きたかった。|オーブンはとても熱かった。|{}は犬と公園に行った。|一日中雨が降った。",
    "Arabic": "أراد {} أن يخبز كعكة.|كان الفرن ساخنا جدا.|ذهب {} إلى الحديقة.|أمطرت طوال اليوم.",
    "Hindi": "{} केक बनाना चाहता था.|ओवन बहुत गरम था.|{} कुत्ते के साथ पार्क गया.|पूरे दिन बारिश हुई.",
}


def foreign_stories(language: str, num_stories: int, seed: int = 0) -> Iterator[str]:
    """Yield stories of two to four sentences in another language."""
    chance, sentences = random.Random(f"{seed} {language}"), SENTENCES[language].split("|")
    for _ in range(num_stories):
        chosen = chance.sample(sentences, chance.randint(2, 4))
        yield " ".join(sentence.format(chance.choice(NAMES)) for sentence in chosen)


def main() -> None:
    """Print a line for each language: the three shares, and how many stories are called not English."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", default="embedded", help="English stories")
    parser.add_argument("--model", help="model directory; default: the model that comes with the package")
    parser.add_argument("--num_stories", type=int, default=4081)
    arguments = parser.parse_args()
    _, tokenizer = load(arguments.model)
    (split, *_) = load_stories(arguments.stories).values()
    english = [" ".join(context) for context in islice(split["context"], arguments.num_stories)]
    texts = {"English": english, "English, one sentence": [split_story(text)[0] for text in english]}
    texts |= {language: list(foreign_stories(language, 200)) for language in SENTENCES}
    print("language | unknown words: mean, 1 %, 99 % | function words: mean, 1 %, 99 % | other scripts | called other")
    for language, stories in texts.items():
        shares = [
            sorted(share(story) for story in stories)
            for share in (lambda text: unknown_share(tokenizer, text), function_word_share, non_latin_share)
        ]
        described = [
            f"{sum(values) / len(values):.2f} {values[len(values) // 100]:.2f} {values[-1 - len(values) // 100]:.2f}"
            for values in shares
        ]
        called = sum(not looks_english(tokenizer, story) for story in stories)
        print(f"{language} | {' | '.join(described)} | {called} of {len(stories)}")


if __name__ == "__main__":
    main()
