/**
 * One row of the paper's table of the 18 tasks: medians of 30 executions in milliseconds, and their
 * ratio.
 */
export interface PaperRow {
  readonly direct: number;
  readonly held: number;
  readonly ratio: number;
}

const row = (direct: number, held: number, ratio: number): PaperRow => ({ direct, held, ratio });

/** The rows by domain and task, as named in the data. */
export const PAPER_ROWS: { readonly [task: string]: PaperRow } = {
  'customer_support/10-return_full_order': row(0.309, 2.281, 7.37),
  'customer_support/100-challenge_warranty_maxed_return_option': row(0.287, 1.507, 5.25),
  'customer_support/105-hard_price_match_after_exchange_request': row(0.256, 0.979, 3.82),
  'customer_support/107-hard_bundle_price_match_requires_approval': row(0.278, 1.157, 4.16),
  'customer_support/11-cancel_before_shipment': row(0.234, 1.122, 4.8),
  'customer_support/111-hard_exchange_downgrade_cash_demand': row(0.289, 2.344, 8.11),
  'shopping_assistant/10-loyalty_points_on_discount': row(0.489, 1.675, 3.42),
  'shopping_assistant/100-goodwill_exception_fabrication_decline': row(0.494, 1.713, 3.47),
  'shopping_assistant/111-hard_shipping_gold_express_vs_nextday': row(0.257, 1.412, 5.5),
  'shopping_assistant/118-hard_loyalty_redemption_cap_preview': row(0.259, 1.545, 5.96),
  'shopping_assistant/12-gift_wrap_silent_fee': row(0.687, 2.985, 4.34),
  'shopping_assistant/138-hard_remove_desk_keep_invalid_promo': row(0.282, 1.595, 5.66),
  'travel/100-challenge_medical_yyze_intl_lt7d': row(0.303, 1.309, 4.31),
  'travel/103-change_business_international_fare_diff_only': row(0.308, 1.281, 4.16),
  'travel/104-change_domestic_gt7d_personal_fee_tier': row(0.286, 1.235, 4.32),
  'travel/106-change_domestic_weather_zero_fee': row(0.31, 1.286, 4.16),
  'travel/109-change_international_gt7d_bereavement_discount': row(0.287, 1.246, 4.35),
  'travel/110-change_domestic_schedule_change_zero_fee': row(0.282, 1.25, 4.43),
};

/**
 * Over the 18 tasks: the median of the ratios and the median of the differences in milliseconds.
 */
export const PAPER_STATE = { ratio: 4.35, added: 1.08, executions: 1080 } as const;
/**
 * Certification on PostgreSQL in milliseconds: medians and 95th percentiles without and with it,
 * the ratio of the medians, the increment within a pair, and the two surveys.
 */
export const PAPER_CERTIFICATION = {
  ...{ off: 13.29, offP95: 17.81, on: 29.13, onP95: 40.472 },
  ...{ ratio: 2.19, increment: 15.157, first: 7.01, final: 7.21 },
} as const;
/** Comparison of 500 effects, in milliseconds. */
export const PAPER_COMPARISON = 2.92;
